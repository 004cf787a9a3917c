"""Words and figures of the page: times, lengths, money, verdicts."""

import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta, timezone
from urllib.parse import quote

import msgspec

from flapd.core.incident.words import amount, percent
from flapd.serve import incident_words
from flapd.serve.items import Estimate, FlapItem, Interval, Seconds
from flapd.serve.job_items import CostItem, IncidentItem
from flapd.serve.page.html import Child, Html, element

NOT_KNOWN = "not known"
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_UNITS = (("s", 1, 2, 100), ("min", 60, 1, 6000), ("h", 3600, 1, 360_000))
_DAYS = ("d", 86_400, 1, math.inf)


def instant(written: str | None, error_seconds: float = 0.0) -> Child:
    """An RFC 3339 time as UTC to the millisecond; the script adds local time."""
    if written is None:
        return NOT_KNOWN
    return _time(unix_ms(written), error_seconds * 1000)


def minute(written: str | None) -> Child:
    """The same to the second, for where more says nothing."""
    if written is None:
        return NOT_KNOWN
    return element("time", written[:19].replace("T", " "), datetime=written)


def moment(interval: Interval | None) -> Child:
    """The middle of an interval and how far off it may be."""
    if interval is None:
        return NOT_KNOWN
    earliest, latest = unix_ms(interval.earliest), unix_ms(interval.latest)
    return _time((earliest + latest) / 2, (latest - earliest) / 2)


def _time(unix_ms: float, error_ms: float) -> Html:
    at = _EPOCH + timedelta(milliseconds=math.floor(unix_ms))
    written = f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d}"
    around = None if not error_ms else f" ±{math.ceil(error_ms) / 1000:.3f}"
    machine = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
    return element("time", written, element("small", around) if around else None, datetime=machine)


def unix_ms(written: str) -> float:
    return (msgspec.convert(written, datetime) - _EPOCH) / timedelta(milliseconds=1)


def length(seconds: Seconds) -> str:
    """As `0.42-0.61 s`: the shortest rounded down, the longest rounded up."""
    if seconds.min is None or seconds.max is None:
        return NOT_KNOWN
    longest = seconds.max
    unit, size, digits, _ = next((one for one in _UNITS if longest < one[3]), _DAYS)
    low = _rounded(seconds.min / size, digits, math.floor)
    high = _rounded(longest / size, digits, math.ceil)
    return f"{low} {unit}" if low == high else f"{low}\N{EN DASH}{high} {unit}"


def _rounded(value: float, digits: int, towards: Callable[[float], int]) -> str:
    step = 10**digits
    # To the nanosecond first: 0.42 * 100 is not 42 in binary.
    return f"{towards(round(value * step, 6)) / step:.{digits}f}"


def lasted(flap: FlapItem) -> str:
    if flap.status == "open":
        return "still down"
    return "end not known" if flap.status == "lost" else length(flap.down_seconds)


def downs(flap: FlapItem) -> str:
    return f"{flap.count}+" if flap.count_at_least else str(flap.count)


def figure(value: float | None, digits: int = 0) -> str:
    """With commas; None is what has no end."""
    return "without end" if value is None else f"{value:,.{digits}f}"


def spread(found: Estimate | CostItem | None, digits: int = 0) -> str:
    """The likely one, and its ends where they differ."""
    if found is None:
        return NOT_KNOWN
    likely, low, high = (figure(one, digits) for one in (found.likely, found.low, found.high))
    return likely if low == high else f"{likely} ({low} to {high})"


def gpu_hours(found: Estimate | None) -> str:
    if found is None:
        return NOT_KNOWN
    hours = [None if one is None else one / 3600 for one in (found.low, found.likely, found.high)]
    return spread(Estimate(*hours), 1)


def money(cost: CostItem | None) -> str:
    return NOT_KNOWN if cost is None else f"{spread(cost, 2)} {cost.currency}"


def plainly(cost: CostItem | None) -> str:
    """The likely price alone."""
    return NOT_KNOWN if cost is None else f"{figure(cost.likely, 2)} {cost.currency}"


def verdict(incident: IncidentItem) -> str:
    ports = (cause.port for cause in incident.causes)
    suspects = incident_words.suspects(ports, incident.shared_cause)
    return incident_words.verdict(incident.verdict, suspects)


def certainty(incident: IncidentItem) -> str:
    """That the first suspect did it, in brackets; empty: there is none."""
    chances = [cause.probability for cause in incident.causes]
    sure = incident_words.certainty(chances, incident.shared_cause)
    return "" if sure is None else f" ({percent(sure)})"


def loss(incident: IncidentItem) -> str:
    """What each GPU lost, in a phrase."""
    lost = incident.lost_seconds
    if lost is None:
        return "loss not known"
    each = "without end" if lost.likely is None else f"{lost.likely:,.1f} s"
    if incident.affected_gpus is None:
        return f"each GPU lost {each}"
    return f"{amount(incident.affected_gpus)} GPUs lost {each} each"


def port_link(name: str) -> Html:
    return element("a", name, href=f"/ports/{quote(name)}", class_="port")


def flap_link(flap_id: str, text: Child) -> Html:
    return element("a", text, href=f"/flaps/{quote(flap_id, safe='')}")


def incident_link(incident_id: str, text: Child) -> Html:
    return element("a", text, href=f"/incidents/{quote(incident_id, safe='')}")


def listed(items: Sequence[str]) -> str:
    return ", ".join(items) or "none"
