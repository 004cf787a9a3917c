"""WatchTold: flaps and incidents of the last day as sentences, the newest first. Pure."""

from flapd.cli.answers import FlapAnswer, Interval
from flapd.cli.flaps import cause, lasted
from flapd.cli.incident_words import VERDICT_STYLES, money, verdict
from flapd.cli.job_answers import IncidentAnswer
from flapd.cli.text import count, gpu_seconds, times, unix_ns
from flapd.cli.watch_feed import Seen
from flapd.serve.incident_words import words

_Said = tuple[str, str]
"""A sentence and its style."""


def told_lately(seen: Seen, utc: bool) -> tuple[str, list[_Said]]:
    """A zone, and the sentences, each with its time."""
    happened: list[tuple[Interval, _Said]] = [
        (one.down, (_flap(one), "bold red" if one.status == "open" else ""))
        for one in seen.flaps or ()
    ]
    happened += [
        (Interval(one.begin, one.begin), (_incident(one), VERDICT_STYLES.get(one.verdict, "")))
        for one in seen.incidents or ()
        if one.begin is not None
    ]
    happened.sort(key=lambda one: unix_ns(one[0].latest), reverse=True)
    zone, moments = times([when for when, _said in happened], utc)
    pairs = zip(moments, happened, strict=True)
    told = [(f"{_short(moment)} {said}", style) for moment, (_, (said, style)) in pairs]
    if seen.is_more:
        told.append(("and more: see `flapd flaps` and `flapd incidents`", ""))
    return zone, told or [(_nothing(seen), "")]


def _short(moment: str) -> str:
    """Without year and fraction."""
    return moment.partition(".")[0][5:]


def _nothing(seen: Seen) -> str:
    flaps = "no flap" if seen.flaps is not None else "flaps are not told"
    incidents = "no incident" if seen.incidents is not None else "incidents are not told"
    return f"{flaps}, {incidents}"


def _flap(item: FlapAnswer) -> str:
    """As `mlx5_0/1 was down for 0.42-0.61 s, 2 downs, link`."""
    how = {"open": "went down and is still down", "lost": "went down; its end is not known"}
    said = how.get(item.status or "") or f"was down for {lasted(item)}"
    downs = "" if item.count in (None, 1) else f"{count(item.count, item.count_at_least)} downs"
    lost = gpu_seconds(item.gpu_seconds)
    kind = "a drop" if item.kind == "drop" else ""
    told = [f"{item.port} {said}", kind, downs, *cause(item), lost and f"{lost} lost"]
    return ", ".join(filter(None, told))


def _incident(item: IncidentAnswer) -> str:
    """As `job 4711: caused by mlx5_0/1, absorbed, 4,506 GPU-s, 3.13 USD`."""
    job = "an incident" if item.job is None else f"job {item.job}"
    state = "goes on" if item.open else ""
    regime = "" if item.regime is None else words(item.regime)
    told = [verdict(item), regime, gpu_seconds(item.gpu_seconds), money(item.cost), state]
    return f"{job}: " + ", ".join(filter(None, told))
