"""What `flapd advise` goes by: outages of an agent, or of a file."""

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from flapd.cli.answers import FlapAnswer
from flapd.cli.flaps import fetch_flaps
from flapd.cli.given import regular
from flapd.cli.output import decoded
from flapd.cli.pages import fetch
from flapd.cli.target import Target
from flapd.cli.text import unix_ns
from flapd.core.cost.durations import Length, outage_length
from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.model.duration import RIGHT_DURATION, parse_duration
from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS
from flapd.serve import written

MOST_FLAPS = 100_000
MOST_PORTS = 1_000_000
LARGEST_FILE_BYTES = 64 << 20

_RIGHT_LINE = f"{RIGHT_DURATION}, with + where it lasted longer than was seen"


class SeenDown(NamedTuple):
    node: str
    port: str
    at_seconds: float
    """Unix time."""
    length: Length


class Seen(NamedTuple):
    lengths: list[Length]
    """Newest first."""
    downs: list[SeenDown]
    """Of the same; empty where only durations are known."""
    left_out: dict[str, int]
    """Why -> how many."""
    now_seconds: float
    span_hours: float
    ports_of: dict[str, int]
    """How many ports each node has that could go down."""


def of_agent(targets: Sequence[Target], since: str, until: str | None) -> Seen:
    """All outages of that time; raises as `ask` does."""
    filters = {"since": since} if until is None else {"since": since, "until": until}
    found = fetch_flaps(targets, filters, MOST_FLAPS)
    now_ns = time.time_ns()
    end_ns = now_ns if until is None else written.unix_ns(until, now_ns)
    ports = (decoded(raw, _Port) for raw in fetch(targets, "/api/v1/ports", {}, MOST_PORTS).raw)
    ports_of = Counter(port.node or "" for port in ports if port.watched)
    span_hours = (end_ns - written.unix_ns(since, now_ns)) / SECOND_NS / 3600
    return _seen(found.items, end_ns / SECOND_NS, span_hours, ports_of)


def of_file(path: Path) -> Seen:
    """A duration a line, or what `flapd flaps --json` printed; FlapdError where it is neither."""
    content = _content(path)
    if content.lstrip()[:1] in (b"{", b"["):
        return _of_json(path, content)
    lengths = [
        _length(path, number, line.partition("#")[0].strip())
        for number, line in enumerate(content.decode("utf-8", "replace").splitlines(), start=1)
        if line.partition("#")[0].strip()
    ]
    return Seen(lengths, [], {}, time.time(), 0.0, {})


class _Port(msgspec.Struct):
    """What is needed of an item of /ports."""

    watched: bool
    node: str | None = None


class _Flaps(msgspec.Struct):
    items: list[FlapAnswer]


def _of_json(path: Path, content: bytes) -> Seen:
    try:
        items = msgspec.json.decode(content, type=_Flaps).items
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FlapdError(
            f"{path}: what `flapd flaps --json` prints would be right: {error}"
        ) from None
    times = [unix_ns(item.down.latest) / SECOND_NS for item in items]
    newest, oldest = max(times, default=0.0), min(times, default=0.0)
    named = {(item.node or "", item.port) for item in items}
    ports_of = Counter(node for node, _ in named)
    return _seen(items, newest, (newest - oldest) / 3600, ports_of)


def _content(path: Path) -> bytes:
    is_stdin = str(path) == "-"
    with open(0 if is_stdin else regular(path), "rb", closefd=not is_stdin) as file:
        content = file.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise FlapdError(f"{path} is larger than {LARGEST_FILE_BYTES >> 20} MiB")
    return content


def _length(path: Path, number: int, line: str) -> Length:
    bare = line.removesuffix("+").strip()
    is_number = bare.isascii() and bare.replace(".", "", 1).isdigit()
    try:
        seconds = parse_duration(float(bare) if is_number else bare).seconds
    except ValueError:
        raise FlapdError(
            f"{path}, line {number}: {line[:40]!r}: {_RIGHT_LINE} would be right"
        ) from None
    return Length(seconds, None if line.endswith("+") else seconds)


def _seen(
    items: Iterable[FlapAnswer], now_seconds: float, span_hours: float, ports_of: Mapping[str, int]
) -> Seen:
    left_out: Counter[str] = Counter()
    downs = []
    for item in items:
        why = _not_counted(item)
        if why is None:
            downs.append(_down(item, now_seconds))
        else:
            left_out[why] += 1
    lengths = [one.length for one in downs]
    return Seen(lengths, downs, dict(left_out), now_seconds, span_hours, dict(ports_of))


def _not_counted(item: FlapAnswer) -> str | None:
    if item.cause not in COUNTED_CAUSES:
        return (item.cause or "cause not told").replace("_", " ")
    return "soon after a boot" if item.grace else None


def _down(item: FlapAnswer, now_seconds: float) -> SeenDown:
    earliest, latest = (unix_ns(at) / SECOND_NS for at in (item.down.earliest, item.down.latest))
    at = (earliest + latest) / 2
    return SeenDown(
        item.node or "", item.port, at, _length_of(item, latest - earliest, now_seconds - latest)
    )


def _length_of(item: FlapAnswer, down_width: float, age_seconds: float) -> Length:
    if item.status == "open":
        return Length(max(0.0, age_seconds), None)
    low, high = item.down_seconds.min, item.down_seconds.max
    known = None if low is None or high is None else (low, high)
    return outage_length(known, item.count or 1, _span(item, down_width))


def _span(item: FlapAnswer, down_width: float) -> tuple[float, float] | None:
    if item.span_seconds is None or item.up is None:
        return None
    up_width = (unix_ns(item.up.latest) - unix_ns(item.up.earliest)) / SECOND_NS
    return item.span_seconds - down_width - up_width, item.span_seconds
