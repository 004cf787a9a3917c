"""What a container's runtime cuts into pieces tells what the whole lines would."""

from collections.abc import Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.job.pieces import LONGEST_JOIN, LONGEST_WAIT, Pieces
from flapd.core.job.stream import LogStream
from flapd.model.fault import Fault
from flapd.model.finding import Finding
from tests.core.job.parts import END_OF_2026, examples, faults
from tests.core.job.test_stream import ERROR, NOISE, TIMEOUT

STAMP = "2026-11-30T08:32:{:02}.123456789Z"
LINES = [one.line for one in examples()]


def records(count: int, stream: str, line: str, cuts: Sequence[int]) -> Iterator[bytes]:
    """The line as the runtime writes it, cut there."""
    data, stamp = line.encode(), STAMP.format(count % 60).encode()
    places = sorted({cut % (len(data) + 1) for cut in cuts} - {0, len(data)})
    for begin, end in zip([0, *places], [*places, len(data)], strict=True):
        tag = b"F" if end == len(data) else b"P"
        yield stamp + b" " + stream.encode() + b" " + tag + b" " + data[begin:end] + b"\n"


def told(data: bytes, cuts: Sequence[int] = ()) -> list[Finding]:
    stream, found, position = LogStream("0.log"), list[Finding](), 0
    for cut in cuts:
        found += stream.feed(data[position : position + cut], END_OF_2026)
        position += cut
    found += stream.feed(data[position:], END_OF_2026)
    return [*found, *stream.finish(END_OF_2026)]


def said(found: Sequence[Finding]) -> list[Finding]:
    """But for where it stood."""
    return [replace(one, source=None, id="") if isinstance(one, Fault) else one for one in found]


STREAMS = st.sampled_from(["stdout", "stderr"])
CUTS = st.lists(st.integers(1, 400), max_size=4)


@given(st.lists(st.tuples(STREAMS, st.sampled_from([*LINES, NOISE]), CUTS), max_size=8))
def test_cut_lines_tell_what_whole_ones_do(lines: list[tuple[str, str, list[int]]]) -> None:
    whole = b"".join(
        piece for n, (stream, line, _) in enumerate(lines) for piece in records(n, stream, line, ())
    )
    cut = b"".join(
        piece
        for n, (stream, line, cuts) in enumerate(lines)
        for piece in records(n, stream, line, cuts)
    )

    assert said(told(cut)) == said(told(whole))


@given(
    st.lists(st.tuples(STREAMS, st.sampled_from([TIMEOUT, ERROR, NOISE]), CUTS), max_size=6),
    st.lists(st.integers(1, 300), max_size=12),
)
def test_however_the_file_is_read_it_tells_the_same(
    lines: list[tuple[str, str, list[int]]], reads: list[int]
) -> None:
    data = b"".join(
        piece
        for n, (stream, line, cuts) in enumerate(lines)
        for piece in records(n, stream, line, cuts)
    )

    assert told(data, reads) == told(data)


def test_pieces_of_two_streams_may_stand_between_each_other() -> None:
    one = list(records(1, "stdout", TIMEOUT, [100, 200]))
    other = list(records(1, "stderr", ERROR, [60]))
    mixed = b"".join([one[0], other[0], one[1], other[1], one[2]])

    kinds = [fault.kind for fault in told(mixed) if isinstance(fault, Fault)]

    assert kinds == ["transport_error", "watchdog_timeout"]


def test_a_line_that_is_not_complete_holds_up_no_other() -> None:
    stream = LogStream("0.log")
    begun = next(records(1, "stderr", "  1%|x| 1/100 [00:01<01:39]", [10]))
    (error,) = records(2, "stdout", ERROR, ())

    found = stream.feed(begun + error, END_OF_2026)

    assert [one.kind for one in found if isinstance(one, Fault)] == ["transport_error"]
    assert stream.offset == 0


def test_of_a_progress_bar_in_pieces_only_what_follows_the_last_carriage_return_goes_on() -> None:
    bar = "10%|#|\r11%|#|\r" + ERROR
    cut = bar.index("NCCL WARN") + 4
    first, rest = records(1, "stderr", bar, [cut])

    (fault,) = faults(first + rest)

    assert (fault.kind, fault.status) == ("transport_error", 12)


@pytest.mark.parametrize("tag", ["P", "F"])
def test_what_is_held_is_bounded(tag: str) -> None:
    pieces, held = Pieces(), 0
    for number in range(20):
        line = f"{STAMP.format(number)} stdout {tag} ".encode() + b"x" * 16_384
        told_now = pieces.take(line + b"\n", held)
        held += len(line) + 1
        assert all(len(one) <= LONGEST_JOIN + 20_000 for _, one in told_now)

    assert sum(len(line) for _, line in pieces.finish()) <= LONGEST_JOIN


def test_an_end_that_never_comes_is_not_waited_for_all_the_time() -> None:
    """After a restart all that came since would be read again."""
    stream = LogStream("0.log")
    found = stream.feed(next(records(1, "stderr", ERROR + " and on", [len(ERROR)])), END_OF_2026)
    assert found == []
    (noise,) = records(2, "stdout", NOISE, ())
    for _ in range(2 * LONGEST_WAIT // len(noise)):
        found += stream.feed(noise, END_OF_2026)

    assert [one.kind for one in found if isinstance(one, Fault)] == ["transport_error"]
    assert stream.offset > LONGEST_WAIT


def test_a_header_whose_form_is_broken_ends_the_message_before_it_however_it_is_read() -> None:
    header = "W1130 08:46:52.713000 17713 torch/distributed/elastic/multiprocessing/api.py:891] "
    lines = [
        f"{header}Sending process 124 closing signal SIGTERM",
        f"{header}Closing process 124 via sIGTERM",
    ]
    whole = b"".join(one for line in lines for one in records(11, "stdout", line, ()))
    whole += b"  traceback : Signal 6 (SIGABRT) received by PID 123\n"
    cut = b"".join(records(11, "stdout", NOISE, [5]))

    first, last = (one for one in told(whole + cut) if isinstance(one, Fault))
    assert first.time_ns is not None
    assert last.time_ns is None
    assert told(whole + cut, [len(whole)]) == [first, last]
