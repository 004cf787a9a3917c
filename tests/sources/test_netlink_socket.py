"""Against the real kernel, in a network namespace."""

import socket
import struct
from errno import EINTR

import pytest

from flapd.sources.netlink_codec import DUMP_INTERRUPTED, MULTI, MalformedError, Message
from flapd.sources.netlink_socket import NetlinkSocket, answer_in
from tests.sources.namespace import in_namespace

DONE, NOOP, LINK = 3, 1, 16
NO_ERROR = struct.pack("=i", 0)


def test_an_answer_of_many_parts_comes_whole_and_a_refusal_is_its_errno() -> None:
    told = in_namespace("dump")

    assert told == {"links": 121, "refused": "ENODEV", "kind": LINK}


def test_an_answer_whose_every_part_takes_long_comes_whole_as_well() -> None:
    assert in_namespace("slow_dump") == 121


def test_what_another_process_sends_is_no_answer() -> None:
    assert in_namespace("others_are_not_believed") == {"forged": False}


def test_an_answer_to_an_earlier_question_is_not_taken() -> None:
    assert in_namespace("late_answers") == {"sequence": 1}


def test_what_a_group_is_told_waits_until_it_is_taken_and_an_overrun_is_told() -> None:
    told = in_namespace("group")

    assert told["kinds"] == [LINK]
    assert told["overrun"]


def test_where_no_answer_comes_it_is_not_waited_for_any_longer() -> None:
    kernel = NetlinkSocket(socket.NETLINK_ROUTE)

    with pytest.raises(TimeoutError):
        kernel.ask(NOOP)  # which the kernel skips
    kernel.close()


def test_an_answer_that_has_no_end_yet_is_none() -> None:
    part = Message(LINK, MULTI, 1, b"")

    assert answer_in([]) is None
    assert answer_in([part, part]) is None
    assert answer_in([part, part, Message(DONE, MULTI, 1, NO_ERROR)]) == [part, part]


def test_an_answer_that_changed_while_it_was_made_is_refused() -> None:
    with pytest.raises(InterruptedError) as caught:
        answer_in([Message(LINK, MULTI | DUMP_INTERRUPTED, 1, b"")])

    assert caught.value.errno == EINTR


def test_a_message_that_is_no_answer_is_malformed() -> None:
    with pytest.raises(MalformedError):
        answer_in([Message(NOOP, 0, 1, b"")])
