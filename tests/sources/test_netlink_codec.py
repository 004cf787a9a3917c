import struct
from errno import EINVAL

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.netlink_codec import (
    DONE,
    ERROR,
    MalformedError,
    Message,
    attributes,
    encode_attribute,
    encode_message,
    messages,
    number,
    text,
)

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)
SHORT = st.binary(max_size=64)


@given(st.lists(st.tuples(U16, U16, U32, SHORT), max_size=8))
def test_messages_come_out_as_they_went_in(
    sent: list[tuple[int, int, int, bytes]],
) -> None:
    padded = [
        (kind, flags, number, raw + bytes(-len(raw) % 4)) for kind, flags, number, raw in sent
    ]

    datagram = b"".join(encode_message(*each) for each in padded)

    assert list(messages(datagram)) == [Message(*each) for each in padded]


@given(st.lists(st.tuples(st.integers(0, 0x3FFF), SHORT), max_size=8))
def test_attributes_come_out_as_they_went_in(sent: list[tuple[int, bytes]]) -> None:
    payload = b"".join(encode_attribute(kind, value) for kind, value in sent)

    assert list(attributes(payload)) == sent


@given(st.binary(max_size=400))
def test_of_any_bytes_nothing_comes_but_messages_or_the_codecs_own_error(raw: bytes) -> None:
    for take_apart in (messages, attributes):
        try:
            found = list(take_apart(raw))
        except MalformedError:
            continue
        assert sum(4 for _ in found) <= len(raw)


def test_that_an_attribute_is_nested_does_not_change_its_number() -> None:
    assert list(attributes(encode_attribute(80 | 0x8000, b"abcd"))) == [(80, b"abcd")]


@pytest.mark.parametrize(
    "raw",
    [
        b"\x10\0\0\0",
        struct.pack("=IHHII", 15, 16, 0, 0, 0),
        struct.pack("=IHHII", 17, 16, 0, 0, 0),
        struct.pack("=IHHII", 0, 16, 0, 0, 0),
    ],
    ids=["half a header", "shorter than a header", "longer than it is", "no length"],
)
def test_a_message_with_a_wrong_length_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        list(messages(raw))


@pytest.mark.parametrize("raw", [b"\x03\0\x01\0", b"\0\0\x01\0", b"\x09\0\x01\0abcd", b"ab"])
def test_an_attribute_with_a_wrong_length_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        list(attributes(raw))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b"\x07", 7),
        (struct.pack("=H", 40000), 40000),
        (struct.pack("=I", 1 << 31), 1 << 31),
        (struct.pack("=Q", (1 << 64) - 1), (1 << 64) - 1),
    ],
)
def test_a_number_is_read_by_its_width(raw: bytes, value: int) -> None:
    assert number(raw) == value


@pytest.mark.parametrize("raw", [b"", b"abc", b"0123456789"])
def test_a_number_of_no_known_width_is_malformed(raw: bytes) -> None:
    with pytest.raises(MalformedError):
        number(raw)


def test_a_text_ends_at_its_nul_and_hides_nothing() -> None:
    assert text(b"rxe0\0junk") == "rxe0"
    assert text(b"rx\xff0") == "rx�0"


def test_an_error_tells_its_errno_and_an_acknowledgement_none() -> None:
    assert Message(ERROR, 0, 1, struct.pack("=i", -EINVAL)).error == EINVAL
    assert Message(ERROR, 0, 1, struct.pack("=i", 0)).error == 0


@pytest.mark.parametrize("payload", [b"", b"abc", struct.pack("=i", 5)])
def test_an_error_without_an_errno_is_malformed(payload: bytes) -> None:
    with pytest.raises(MalformedError):
        _ = Message(DONE, 0, 1, payload).error
