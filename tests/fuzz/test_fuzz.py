"""Whatever stands in a log or a dump, it is read or refused; FLAPD_SEED and FLAPD_FUZZ_SECONDS."""

import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence

import msgspec
import pytest

from flapd.core.job.dump import Dump, dump_of
from flapd.core.job.stream import LogStream
from flapd.model.errors import FlapdError
from flapd.model.fault import LONGEST_TEXT_BYTES, Fault
from flapd.model.finding import Finding
from flapd.model.observation import DumpsRead, FaultRead, Noted
from flapd.sources.dumps import plain_data
from flapd.sources.follow.dump_files import dumps_read
from flapd.sources.jobs.queue_pairs import parse_queue_pairs
from flapd.sources.netlink_codec import MalformedError
from tests.core.job.parts import END_OF_2026, examples
from tests.core.job.test_dump import content, entry
from tests.fuzz.mutation import cuts, mutated
from tests.sources.jobs.test_queue_pairs import pair
from tests.sources.netlink_bytes import attributes_of
from tests.sources.test_dumps import as_torch_writes

SEED = int(os.environ.get("FLAPD_SEED", "1"))
SECONDS = float(os.environ.get("FLAPD_FUZZ_SECONDS", "20"))
pytestmark = pytest.mark.long

RUNTIME = b"2026-11-30T08:32:11.123456789Z stdout F "
LINES = [one.line.encode() for one in examples()]
LOGS = [
    *LINES,
    b"\n".join(LINES),
    b"".join(RUNTIME + line + b"\n" for line in LINES[:20]),
    *(RUNTIME.replace(b" F ", b" P ") + one[:60] + b"\n" + RUNTIME + one[60:] for one in LINES[:9]),
    *(b'{"log":"' + line + b'\\n","time":"2026-11-30T08:32:11.5Z"}' for line in LINES[:9]),
]
DUMP = content(entry(6), entry(7, "started", duration_ms=1.5, thread_id=2**40))
DUMPS = [
    as_torch_writes(DUMP),
    msgspec.json.encode(DUMP),
    as_torch_writes(DUMP["entries"]),
    msgspec.json.encode(content(*(entry(number) for number in range(20)))),
]
QUEUE_PAIRS = [
    attributes_of((1, 0), (19, pair(1, 6, 700) + pair(2, 3, None) + pair(3, 3, 9, None)))
]

_decoder = msgspec.msgpack.Decoder(FaultRead | Noted)


def told(data: bytes, pieces: Sequence[tuple[int, int]]) -> Iterator[Finding]:
    stream = LogStream("job.log")
    for begin, end in pieces:
        yield from stream.feed(data[begin:end], END_OF_2026)
    yield from stream.finish(END_OF_2026)
    assert stream.offset == len(data)


def read_log(data: bytes, chance: random.Random) -> None:
    """It says the same however it is read, all of it can be told on, and no text is too long."""
    whole = [*told(data, [(0, len(data))])]
    for finding in whole:
        is_fault = isinstance(finding, Fault)
        passed = FaultRead(finding, 1) if isinstance(finding, Fault) else Noted(None, finding, 1)
        assert _decoder.decode(msgspec.msgpack.encode(passed)) == passed
        assert not is_fault or len(finding.text.encode()) <= LONGEST_TEXT_BYTES  # type: ignore[union-attr]
    assert [*told(data, [*cuts(len(data), chance)])] == whole


def read_dump(data: bytes, chance: random.Random) -> None:
    """It is refused, or tells what passes the link."""
    try:
        dump = dump_of(plain_data(data))
    except FlapdError:
        return
    other: Dump = dump_of(DUMP)
    passed = dumps_read("4711", {0: dump, chance.randrange(1, 9): other})
    again = msgspec.msgpack.decode(msgspec.msgpack.encode(passed), type=DumpsRead)
    assert again == passed


def read_queue_pairs(data: bytes, _: random.Random) -> None:
    try:
        assert all(one.thread >= 0 for one in parse_queue_pairs(data))
    except MalformedError:
        return


@pytest.mark.parametrize(
    ("corpus", "read"),
    [(LOGS, read_log), (DUMPS, read_dump), (QUEUE_PAIRS, read_queue_pairs)],
    ids=["logs", "dumps", "queue pairs"],
)
def test_whatever_is_read_is_understood_or_refused(
    corpus: Sequence[bytes], read: Callable[[bytes, random.Random], None]
) -> None:
    deadline, number = time.monotonic() + SECONDS, 0
    while time.monotonic() < deadline:
        chance = random.Random(f"{SEED} {number}")
        data = mutated(corpus, chance)
        try:
            read(data, chance)
        except Exception as error:
            raise AssertionError(f"seed {SEED}, case {number}: {data[:2000]!r}") from error
        number += 1
    sys.stdout.write(f"{number} cases\n")
    assert number > 0
