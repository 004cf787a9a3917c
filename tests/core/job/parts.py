"""What tests of the job room share: the example lines, and a stream that reads some."""

from pathlib import Path
from typing import Any

import msgspec

from flapd.core.job.clock import Clock
from flapd.core.job.stream import LogStream
from flapd.model.civil import civil_ns
from flapd.model.fault import Fault
from flapd.model.finding import Finding

EXAMPLES = Path(__file__).parent / "examples"


class Example(msgspec.Struct):
    form: str
    line: str
    expect: dict[str, Any]


class _File(msgspec.Struct):
    example: list[Example]


def examples() -> list[Example]:
    return [
        one
        for path in sorted(EXAMPLES.glob("*.toml"))
        for one in msgspec.toml.decode(path.read_bytes(), type=_File).example
    ]


def utc(*fields: int) -> int:
    found = civil_ns(*fields)
    assert found is not None
    return found


END_OF_2026 = Clock(reference_ns=utc(2026, 12, 31, 0, 0, 0))


def read(text: str | bytes, clock: Clock = END_OF_2026, **origin: Any) -> list[Finding]:
    """All that a file with this content tells."""
    stream = LogStream(origin.pop("file", "job.log"), **origin)
    data = text.encode() if isinstance(text, str) else text
    return [*stream.feed(data, clock), *stream.finish(clock)]


def faults(text: str | bytes, clock: Clock = END_OF_2026, **origin: Any) -> list[Fault]:
    return [one for one in read(text, clock, **origin) if isinstance(one, Fault)]
