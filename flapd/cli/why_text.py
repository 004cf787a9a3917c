"""One incident on one screen: what was seen, what it means, what it cost, what now."""

from collections.abc import Iterator, Sequence
from typing import Any

from flapd.cli.answers import Spread
from flapd.cli.incident_words import VERDICT_STYLES, certainty, money, verdict
from flapd.cli.job_answers import Cause, IncidentDetail, Lost, PolicyValue
from flapd.cli.output import Cell, Column, print_line, print_table
from flapd.cli.text import amount, times
from flapd.cli.why_evidence import Timeline, timeline
from flapd.core.incident.words import percent
from flapd.serve.incident_words import source, words

_INDENT = 13


def print_why(incident: IncidentDetail, utc: bool) -> None:
    seen = timeline(incident)
    intervals = [row.when for row in seen.rows]
    zone, moments = times(intervals, utc)
    print_line(_headline(incident), VERDICT_STYLES.get(incident.verdict, "bold"))
    print()
    _print_seen(seen, zone, moments)
    if incident.explanation:
        is_elsewhere = zone not in ("UTC", "UTC+00:00")
        print()
        print_line("In words, with times in UTC:" if is_elsewhere else "In words:")
        print_line(f"  {' '.join(incident.explanation)}", indent=2)
    print()
    for name, said in _figures(incident):
        print_line(f"{name:<{_INDENT}}{said}", indent=_INDENT)
    _print_list("cannot see", incident.blind_to, "yellow")
    _print_list("do", incident.advice, "bold")


def _headline(incident: IncidentDetail) -> str:
    job = "" if incident.job is None else f", job {incident.job}"
    state = ", goes on" if incident.open else ""
    return f"{incident.id}: {verdict(incident)}{job}{state}"


def _print_seen(seen: Timeline, zone: str, moments: Sequence[str]) -> None:
    if seen.rows:
        columns = [
            Column(f"seen ({zone})", is_whole=True),
            Column("who", is_whole=True),
            Column("what"),
            Column(""),
        ]
        told = zip(seen.rows, moments, strict=True)
        print_table(
            columns,
            [[Cell(at), Cell(row.who), Cell(row.what), Cell(row.note)] for row, at in told],
        )
    else:
        print_line("The evidence itself is not kept any more.")
    for said in seen.undated:
        print_line(f"at a time that nobody knows: {said}", indent=2)
    if seen.left_out:
        print_line(f"and {seen.left_out} more that follow from these (--json has them)")


def _figures(incident: IncidentDetail) -> Iterator[tuple[str, str]]:
    titles = iter(["verdict"])
    if incident.shared_cause is not None and incident.causes:
        yield next(titles, ""), f"{incident.shared_cause}, with {certainty(incident)}"
    for cause in incident.causes[:3]:
        yield next(titles, ""), _cause(cause)
    if not incident.causes:
        yield "verdict", words(incident.verdict)
    policy = "; ".join(_value(name, value) for name, value in _policy(incident))
    if policy:
        yield "policy", policy
    if incident.regimes:
        chances = sorted(incident.regimes.items(), key=lambda one: -one[1])
        yield "became of it", ", ".join(f"{words(name)} {percent(p)}" for name, p in chances if p)
    if incident.lost_seconds is not None:
        yield from _loss(incident, incident.lost_seconds)
    else:
        yield "lost", "not known"


def _cause(cause: Cause) -> str:
    lag = cause.lag_seconds
    when = f"{lag:,.2f} s after its down" if lag >= 0 else f"{-lag:,.2f} s before its down"
    rho = "" if cause.rho is None else f", {cause.rho:.2f} x the retry budget"
    budget = "" if cause.budget_seconds is None else f" of {_spread(cause.budget_seconds, 's')}"
    return (
        f"{cause.port} with {percent(cause.probability)}; "
        f"by accident (p0) {percent(cause.chance)}; {when}{rho}{budget if rho else ''}"
    )


_POLICY = {
    "ib_timeout": ("NCCL_IB_TIMEOUT", ""),
    "retry_cnt": ("NCCL_IB_RETRY_CNT", ""),
    "watchdog_seconds": ("watchdog", " s"),
    "restart_seconds": ("restart", " s"),
    "checkpoint_age_seconds": ("work since the checkpoint", " s"),
    "propagation_seconds": ("until torn down", " s"),
}


def _policy(incident: IncidentDetail) -> Iterator[tuple[str, PolicyValue]]:
    """What decided, and what the loss is made of."""
    lost = incident.lost_seconds or Lost()
    parts = {
        "propagation_seconds": lost.propagation,
        "restart_seconds": lost.restart,
        "checkpoint_age_seconds": lost.rework,
    }
    for name in _POLICY:
        if name in incident.policy and parts.get(name, True):
            yield name, incident.policy[name]


def _value(name: str, given: PolicyValue) -> str:
    title, unit = _POLICY[name]
    ends = "" if given.low == given.high else f", {_plain(given.low)} to {_plain(given.high)}"
    value = "without end" if given.value is None else f"{_plain(given.value)}{unit}"
    return f"{title} {value} ({source(given.source)}{ends})"


def _plain(value: Any) -> str:
    if value is None:
        return "without end"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)


def _loss(incident: IncidentDetail, lost: Lost) -> Iterator[tuple[str, str]]:
    parts = (
        ("standing still", lost.stall),
        ("until it was noticed", lost.detect),
        ("until it was torn down", lost.propagation),
        ("to run again", lost.restart),
        ("of work done again", lost.rework),
    )
    told = [f"{_seconds(value)} {name}" for name, value in parts if value]
    made_of = f": {' + '.join(told)}" if told else ""
    yield "lost by each", f"{_spread(lost, 's', 1)}{made_of}"
    if incident.gpu_seconds is not None:
        gpus = "" if incident.affected_gpus is None else f"x {incident.affected_gpus:,} GPUs = "
        price = money(incident.cost)
        total = f"{gpus}{_spread(incident.gpu_seconds, 'GPU-s')}"
        yield "in all", total + (f" = {price}" if price else "")
    yield "it rests on", _rests(incident, lost)


def _rests(incident: IncidentDetail, lost: Lost) -> str:
    """Shares of the likely loss: what was seen, what nobody gave, and the model between."""
    assumed = lost.assumed_share
    if not lost.likely or assumed is None:
        return "the model: nothing of it was measured"
    still = min(lost.stall or 0.0, sum(stall.seconds or 0.0 for stall in incident.stalls))
    is_timed = any(fault.primary and fault.time is not None for fault in incident.faults)
    noticed = (lost.detect or 0.0) if is_timed and incident.flaps else 0.0
    measured = min(1.0 - assumed, (still + noticed) / lost.likely)
    modelled = max(0.0, 1.0 - measured - assumed)
    return f"{measured:.0%} measured, {modelled:.0%} modelled, {assumed:.0%} assumed"


def _spread(spread: Spread, unit: str, digits: int = 0) -> str:
    likely, low, high = (amount(end, digits) for end in (spread.likely, spread.low, spread.high))
    ends = "" if low == high else f" ({low} to {high})"
    return f"{likely} {unit}{ends}"


def _seconds(value: float) -> str:
    return f"{value:,.1f} s"


def _print_list(title: str, said: Sequence[str], style: str) -> None:
    for number, sentence in enumerate(said):
        name = title if number == 0 else ""
        print_line(f"{name:<{_INDENT}}{sentence}", style, indent=_INDENT)
