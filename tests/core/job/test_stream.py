"""A log is read the same however it is cut, prefixed and mixed up, whatever it holds."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.core.job.clock import Clock
from flapd.core.job.forms import FORMS
from flapd.core.job.message import plain
from flapd.core.job.sieve import Sieve
from flapd.core.job.stream import LONGEST_LINE, LogStream
from flapd.model.fault import LONGEST_TEXT_BYTES, Fault
from flapd.model.finding import Finding, Step
from tests.core.job.parts import END_OF_2026, examples, faults, read, utc

LINES = [one.line for one in examples()]
TIMEOUT = (
    "[rank3]:[E1130 08:32:11.123456789 ProcessGroupNCCL.cpp:616] "
    "[PG ID 0 PG GUID 0(default_pg) Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=116, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
    "ran for 600026 milliseconds before timing out."
)
ERROR = (
    "node01:14000:14711 [3] transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion from peer "
    "10.0.0.1<53249> with status=12 opcode=0 len=0 vendor err 129 (Send)"
)
NOISE = "node01:14000:14711 [3] NCCL INFO Channel 00/0 : 1[1] -> 0[0] via P2P/CUMEM"

noise = st.text(st.characters(exclude_categories=("Cs", "Cc")), max_size=40)


@given(st.lists(st.one_of(st.sampled_from(LINES), noise)), st.lists(st.integers(1, 500)))
def test_a_log_tells_the_same_however_it_is_cut(lines: list[str], cuts: list[int]) -> None:
    data = "\n".join(lines).encode()
    stream, found, position = LogStream("job.log"), list[Finding](), 0
    for cut in cuts:
        found += stream.feed(data[position : position + cut], END_OF_2026)
        position += cut
    found += stream.feed(data[position:], END_OF_2026)
    found += stream.finish(END_OF_2026)

    assert found == read(data)


@settings(max_examples=300)
@given(st.sampled_from(LINES), noise, noise)
def test_the_sieve_drops_no_line_that_a_form_matches(line: str, before: str, after: str) -> None:
    whole = f"{before}{line}{after}"
    sieve = Sieve(FORMS)
    sieve.candidates(b"something seen before\n" + after.encode())

    assert any(form.head.search(plain(whole.encode())) for form in FORMS)
    assert sieve.candidates(whole.encode()) == [(0, whole.encode())]


def test_a_needle_stands_in_every_head() -> None:
    """Whatever a head matches is looked at only where the needle is: one must imply the other."""
    for line in LINES:
        for form in FORMS:
            if form.head.search(line):
                assert form.needle in line, form.name


@given(st.lists(st.sampled_from([*LINES, NOISE]), min_size=1), st.integers(0, 10_000))
def test_offsets_are_those_of_the_lines(lines: list[str], begin: int) -> None:
    data = "\n".join(lines).encode()

    for fault in faults(data, offset=begin):
        assert fault.source is not None
        line = data[fault.source.offset - begin :].split(b"\n")[0].decode()
        assert fault.text[:20] in line


def test_reading_goes_on_after_a_restart_where_it_was() -> None:
    data = f"{NOISE}\n{TIMEOUT}\n{ERROR}\nhalf a li".encode()
    first = LogStream("job.log")
    before = first.feed(data, END_OF_2026)
    second = LogStream("job.log", offset=first.offset)
    second.feed(data[first.offset :], END_OF_2026)
    after = second.feed(f"ne\n{ERROR}\n".encode(), END_OF_2026)

    assert before + after == faults(data + f"ne\n{ERROR}\n".encode())


@pytest.mark.parametrize(
    ("prefix", "who"),
    [
        ("", {"rank": None}),
        ("12: ", {"rank": None}),
        ("  3: ", {"rank": None}),
        ("[1,12]<stdout>:", {"rank": 12}),
        ("[prterun-node01-7@1,12]<stderr>: ", {"rank": 12}),
        ("[rank12]:", {"rank": 12}),
        ("[default4]:[rank12]: ", {"rank": 12}),
        ("(RayTrainWorker pid=14000, ip=10.0.0.1) ", {"rank": None, "host": "node01"}),
        ("rank12.log:", {"rank": None}),
        ("logs/rank12.log:77:", {"rank": None, "pid": 14000}),
        ("2026-11-30T08:32:11.5Z stdout F [1,12]<stdout>:", {"rank": 12}),
        ("2026-11-30T09:32:11.500000000+01:00 stderr F ", {"arrived_ns": 1796027531500000000}),
        ("logs/a.log:2026-11-30T08:32:11.5Z stdout F 12: [rank12]:", {"rank": 12}),
        ("\x1b[36m(Worker pid=5)\x1b[0m ", {"pid": 14000}),
    ],
)
def test_launch_prefixes_do_not_hide_a_message(prefix: str, who: dict[str, Any]) -> None:
    (fault,) = faults(f"{prefix}{ERROR}\n")

    assert fault.status == 12
    assert fault.text == ERROR
    assert {name: getattr(fault, name) for name in who} == who
    assert fault.host == "node01"


def test_a_line_of_docker_is_read_as_what_the_process_wrote() -> None:
    escaped = ERROR.replace("<", "\\u003c").replace(">", "\\u003e")
    line = f'{{"log":"{escaped}\\n","stream":"stderr","time":"2026-11-30T08:32:11.5Z"}}\n'

    (fault,) = faults(line)

    assert fault.peer == "10.0.0.1<53249>"
    assert fault.arrived_ns == utc(2026, 11, 30, 8, 32, 11, 500_000_000)


def test_several_messages_in_one_line_are_all_read() -> None:
    found = faults(f"{NOISE}{TIMEOUT}{ERROR}{TIMEOUT.replace('rank3', 'rank5')}\n")

    kinds = [one.kind for one in found]
    assert kinds == ["watchdog_timeout", "transport_error", "watchdog_timeout"]
    assert [one.rank for one in found] == [3, None, 5]
    assert [one.host for one in found] == [None, "node01", None]


def test_a_message_cut_off_by_another_keeps_what_it_said() -> None:
    cut = TIMEOUT[: TIMEOUT.index("NumelIn")]

    first, second = faults(f"{cut}{ERROR}\n")

    assert (first.seq, first.op, first.ran_seconds) == (116, "ALLREDUCE", None)
    assert second.peer == "10.0.0.1<53249>"


def test_a_carriage_return_ends_a_line() -> None:
    progress = "Epoch 0:   6%| | 32040/500150 [6:28:43<94:39:17,  1.37it/s]"

    found = faults(f"{progress}\r{progress}\r{ERROR}\r\n{TIMEOUT}\r\n")

    assert [one.kind for one in found] == ["transport_error", "watchdog_timeout"]


def test_a_message_of_several_lines_is_of_one_speaker_at_one_time() -> None:
    header = (
        "[rank3]:[E1130 08:32:11.123456789 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) Rank 3] "
        "Process group watchdog thread terminated with exception: NCCL error: remote process "
        "exited or there was a network error, NCCL version 2.20.5"
    )
    quoted = ERROR[ERROR.index("NET/IB") :]

    first, second = faults(f"{header}\nncclRemoteError: A call failed\nLast error:\n{quoted}\n")

    assert (first.kind, second.kind) == ("nccl_error", "transport_error")
    assert (second.rank, second.time_ns) == (3, first.time_ns)


def test_a_line_that_continues_nothing_has_no_speaker() -> None:
    quoted = ERROR[ERROR.index("NET/IB") :]

    _, after_another = faults(f"{TIMEOUT}\n{NOISE}\n{quoted}\n")
    _, far = faults(f"{TIMEOUT}\n" + "x" * 100_000 + f"\n{quoted}\n")

    assert (after_another.rank, after_another.time_ns) == (None, None)
    assert (far.rank, far.time_ns) == (None, None)


def test_labelled_lines_continue_those_of_the_same_label() -> None:
    quoted = ERROR[ERROR.index("NET/IB") :]
    other = TIMEOUT.replace("rank3", "rank5")

    found = faults(f"3: {TIMEOUT}\n5: {other}\n3: Last error:\n3: {quoted}\n")

    assert [one.rank for one in found] == [3, 5, 3]


def test_an_event_that_pytorch_quotes_is_not_told_as_one() -> None:
    """The last warning of a process may be days old."""
    header = TIMEOUT.replace("Watchdog caught", "Process group watchdog caught")

    assert faults(f"{header}\nLast error:\nNET/IB : mlx5_0:1 Got async event : port error\n") == []


def test_unknown_warnings_are_counted() -> None:
    stream = LogStream("job.log")
    line = "node01:14000:14711 [3] graph/xml.cc:1 NCCL WARN Attribute sm of node gpu not found\n"

    assert stream.feed((line * 3).encode(), END_OF_2026) == []
    assert stream.unknown_warnings == 3
    assert stream.lines == 3


def test_many_readers_of_one_shared_file_make_one_fault() -> None:
    text = f"{TIMEOUT}\n{ERROR}\n"

    one, other = faults(text, file="/shared/job.log"), faults(text, file="/mnt/shared/job.log")

    assert [fault.id for fault in one] == [fault.id for fault in other]


def test_the_same_line_at_another_place_is_another_fault() -> None:
    first, second = faults(f"{ERROR}\n{ERROR}\n")

    assert first.id != second.id


def test_the_same_line_of_two_nodes_is_two_faults() -> None:
    line = "terminate called after throwing an instance of 'c10::DistBackendError'\n"

    assert faults(line, scope="node01")[0].id != faults(line, scope="node02")[0].id


def test_the_text_is_bounded_and_harmless() -> None:
    (fault,) = faults(f"{ERROR} \x1b[2J\x1b]0;title\x07\x00é{'é' * 5000}\n")

    assert len(fault.text.encode()) <= LONGEST_TEXT_BYTES
    assert fault.text.isprintable()


def test_a_line_without_an_end_is_held_in_pieces() -> None:
    stream = LogStream("job.log")
    found: list[Finding] = []
    for _ in range(100):
        found += stream.feed(b"x" * LONGEST_LINE, END_OF_2026)
        assert stream.offset % LONGEST_LINE == 0
    found += stream.feed(f"\n{ERROR}\n".encode(), END_OF_2026)

    assert [one.kind for one in found if isinstance(one, Fault)] == ["transport_error"]


@given(st.binary(max_size=2000))
def test_any_bytes_are_read(data: bytes) -> None:
    read(data)


@settings(max_examples=300)
@given(st.lists(st.tuples(st.sampled_from(LINES), st.integers(0, 400), st.integers(0, 400))))
def test_any_mixture_of_pieces_of_messages_is_read(pieces: list[tuple[str, int, int]]) -> None:
    text = "".join(line[start : start + length] for line, start, length in pieces)

    for fault in faults(text, Clock(arrived_ns=utc(2026, 11, 30, 8, 32, 12))):
        assert fault.time_ns is not None


def test_a_rank_that_is_no_number_of_this_world_is_not_known_and_its_line_is() -> None:
    line = b"srun: error: node01: task 999999999999999999999: Exited with exit code 134\n"

    (death,) = LogStream("job.log").feed(line, Clock())

    assert isinstance(death, Fault)
    assert (death.kind, death.rank) == ("process_death", None)
    assert msgspec.msgpack.encode(death)


@pytest.mark.parametrize(("written", "number"), [("2.56e+7", 25_600_000), ("3.2e+49", None)])
def test_a_step_of_a_number_that_no_job_reaches_is_not_known_and_its_time_is(
    written: str, number: int | None
) -> None:
    line = (
        f"Epoch 0:   6%|# | 6/100 [00:28<07:17, 1.37it/s, loss=2.590, global_step={written}, "
        "train_step_timing in s=1.2]\n"
    )

    (step,) = LogStream("job.log").feed(line.encode(), Clock())

    assert isinstance(step, Step)
    assert (step.number, step.seconds) == (number, 1.2)
    assert msgspec.msgpack.encode(step)
