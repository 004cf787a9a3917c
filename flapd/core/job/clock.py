"""Clock: from the time in a message and the time of its arrival to the time to believe.

Messages carry local time without a zone: NCCL since 2.26 in whole seconds, PyTorch since 2.4
without a year (month and day as one number, not padded). The zone is assumed and held against
the arrival; where they contradict each other that is told as an error, never put right silently.
"""

import re

import msgspec

from flapd.model.civil import civil_ns, year_of
from flapd.model.times import SECOND_NS

DAY_NS = 86400 * SECOND_NS
_QUARTER_HOUR_NS = 900 * SECOND_NS
"""All zones are whole quarters of an hour off UTC."""
_PROMPT_NS = 2 * SECOND_NS
"""Between a message and its arrival where a log is followed as it is written."""
_LARGEST_ZONE_NS = 26 * 3600 * SECOND_NS
"""Between a clock 12 hours behind UTC and one 14 hours ahead."""

_FIRST_YEAR, _LAST_YEAR = 1970, 2200
"""Other years are of no log, and their nanoseconds would not fit into 64 bits."""

_FULL = re.compile(
    r"(\d{4})-(\d\d?)-(\d\d?)[ T_](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?",
    re.ASCII,
)
_SHORT = re.compile(r"(\d{1,2})(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{1,9}))?", re.ASCII)


class Clock(msgspec.Struct, frozen=True):
    """What is known of the time while some lines are read; unix time in nanoseconds."""

    arrived_ns: int | None = None
    """When they were read, if they were read as they were written."""
    reference_ns: int | None = None
    """Not much before the latest of them was written: such as the time of the file's change."""
    utc_offset_seconds: int = 0
    """Assumed of the zone of their times: local time less UTC."""
    year: int | None = None
    """Of times that have none, where somebody says so."""


class Timed(msgspec.Struct, frozen=True):
    """When a message was written, how sure that is, and what its own clock said."""

    time_ns: int | None
    error_ns: int
    logged_ns: int | None
    arrived_ns: int | None


def with_zone(written: str) -> int | None:
    """A time that names its zone, as unix time; None where there is none."""
    found = _FULL.search(written)
    if found is None or found[8] is None:
        return None
    local_ns = _civil(found.groups()[:7])
    return None if local_ns is None else local_ns - _zone_ns(found[8])


def timed(stamp: str | None, clock: Clock, taken_ns: int | None = None) -> Timed:
    """The time of a message with this stamp; `taken_ns` is when a container's runtime took it."""
    arrived_ns = clock.arrived_ns if taken_ns is None else taken_ns
    local_ns = None if stamp is None else _local_ns(stamp, clock, arrived_ns)
    if stamp is None or local_ns is None:
        return Timed(arrived_ns, 0 if arrived_ns is None else _PROMPT_NS, None, arrived_ns)
    logged_ns = local_ns - clock.utc_offset_seconds * SECOND_NS
    time_ns, error_ns = _believed(logged_ns, arrived_ns)
    return Timed(time_ns, max(error_ns, _resolution_ns(stamp)), logged_ns, arrived_ns)


def _believed(logged_ns: int, arrived_ns: int | None) -> tuple[int, int]:
    """The log's time where the zone assumed can be right, and how far off it may be."""
    if arrived_ns is None:
        return logged_ns, 0
    late_ns = arrived_ns - logged_ns
    if -_PROMPT_NS <= late_ns < _QUARTER_HOUR_NS:
        # Later than prompt: the process buffered it, as NCCL did in files before 2.27.3.
        return logged_ns, 0
    off_ns = (late_ns + _PROMPT_NS) % _QUARTER_HOUR_NS - _PROMPT_NS
    if off_ns <= _PROMPT_NS and abs(late_ns) <= _LARGEST_ZONE_NS:
        return arrived_ns - off_ns, _PROMPT_NS
    return arrived_ns, abs(late_ns)


def _local_ns(stamp: str, clock: Clock, arrived_ns: int | None) -> int | None:
    full = _FULL.search(stamp)
    if full is not None:
        return _civil(full.groups()[:7])
    short = _SHORT.search(stamp)
    if short is None:
        return None
    reference_ns = clock.reference_ns if arrived_ns is None else arrived_ns
    return _in_its_year(short.groups(), clock.year, reference_ns)


def _in_its_year(
    fields: tuple[str | None, ...], year: int | None, reference_ns: int | None
) -> int | None:
    """The latest that is not after the reference, but for a zone's and a clock's difference."""
    if year is not None:
        return _civil((str(year), *fields))
    if reference_ns is None:
        return None
    newest = year_of(reference_ns) + 1
    # Eight years: 29 February may be that long ago (1896 to 1904, 2096 to 2104).
    moments = (_civil((str(newest - back), *fields)) for back in range(10))
    return next(
        (one for one in moments if one is not None and one <= reference_ns + DAY_NS),
        None,
    )


def _civil(fields: tuple[str | None, ...]) -> int | None:
    year, month, day, hour, minute, second, fraction = (one or "0" for one in fields)
    fraction_ns = int(fraction.ljust(9, "0"))
    if not _FIRST_YEAR <= int(year) <= _LAST_YEAR:
        return None
    return civil_ns(
        int(year), int(month), int(day), int(hour), int(minute), int(second), fraction_ns
    )


def _zone_ns(written: str) -> int:
    if written == "Z":
        return 0
    minutes = int(written[1:3]) * 60 + int(written[-2:])
    return (-minutes if written[0] == "-" else minutes) * 60 * SECOND_NS


def _resolution_ns(stamp: str) -> int:
    return SECOND_NS if re.search(r"[.,]\d", stamp) is None else 0
