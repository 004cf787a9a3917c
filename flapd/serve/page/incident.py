"""One incident: the story, the evidence, how its price comes about, what to do, a ticket."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from flapd.core.incident.words import percent
from flapd.serve.incident_words import source, words
from flapd.serve.items import PortItem
from flapd.serve.job_items import CauseItem, GivenItem, IncidentDetail, LostItem
from flapd.serve.page.evidence import evidence, extent
from flapd.serve.page.front import timeline
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.parts import Column, facts, items, section, table
from flapd.serve.page.ticket import ticket
from flapd.serve.page.words import (
    NOT_KNOWN,
    figure,
    flap_link,
    incident_link,
    minute,
    money,
    port_link,
    spread,
    verdict,
)

_MARGIN = 0.15
"""Of the timeline: how much of its length is shown before and after it."""
_LEAST_MARGIN = timedelta(seconds=5)
_NAMES = {"ib_timeout": "NCCL_IB_TIMEOUT", "retry_cnt": "NCCL_IB_RETRY_CNT"}
_PARTS = (
    ("stall", "standing still"),
    ("detect", "until it was noticed"),
    ("propagation", "until it was torn down"),
    ("restart", "to run again"),
    ("rework", "of work done again"),
)


def incident_title(incident: IncidentDetail) -> str:
    job = "" if incident.job is None else f"job {incident.job}: "
    return f"{job}{verdict(incident)}"


def incident_page(incident: IncidentDetail, ports: Mapping[str, PortItem]) -> Iterator[Html]:
    """`ports` by name, as they are now."""
    yield element("h1", incident_title(incident))
    yield section(
        "story",
        "What happened",
        facts(
            {
                "Incident": incident_link(incident.id, incident.id),
                "Began (UTC)": minute(incident.begin),
                "Ended (UTC)": "goes on" if incident.open else minute(incident.end),
                "Verdict": words(incident.verdict),
                "Became of it": _regimes(incident.regimes),
                "Price": money(incident.cost),
            }
        ),
        items(incident.explanation, "story"),
        _list("What to do", incident.advice),
        _list("What could not be seen", incident.blind_to),
        element("p", element("button", "Copy the link", type="button", data_copy_link=True)),
    )
    yield timeline("the time around it", *_span(incident))
    yield section("evidence", "Evidence", *evidence(incident))
    yield section("causes", "Possible causes", _causes(incident.causes))
    yield section("price", "How the price comes about", *_price(incident))
    yield from ticket(incident.flaps, ports, incident)


def _list(title: str, said: list[str]) -> Child:
    return [element("h3", title), items(said)] if said else None


def _regimes(regimes: Mapping[str, float]) -> str:
    chances = sorted(regimes.items(), key=lambda one: -one[1])
    return ", ".join(f"{words(name)} {percent(p)}" for name, p in chances if p) or NOT_KNOWN


def _span(incident: IncidentDetail) -> tuple[str, str] | tuple[None, None]:
    """Of its timeline: all its evidence, and something on either side."""
    known = extent(incident) or (
        incident.begin and (incident.begin, incident.end or incident.begin)
    )
    if not known:
        return None, None
    begin, end = (msgspec.convert(written, datetime) for written in known)
    margin = max((end - begin) * _MARGIN, _LEAST_MARGIN)
    return (begin - margin).isoformat(), (end + margin).isoformat()


def _causes(causes: list[CauseItem]) -> Html:
    columns = [
        Column("Port"),
        Column("Probability", "number"),
        Column("By accident", "number"),
        Column("Symptom after its down", "number"),
        Column("Of the retry budget", "number wide"),
        Column("GPU-seconds", "number wide"),
    ]
    rows = (
        (
            [port_link(one.port), " ", flap_link(one.flap, "outage")],
            percent(one.probability),
            percent(one.chance),
            f"{one.lag_seconds:,.2f} s",
            "-" if one.rho is None else f"{one.rho:.2f} of {spread(one.budget_seconds)} s",
            NOT_KNOWN if one.gpu_seconds is None else spread(one.gpu_seconds),
        )
        for one in causes
    )
    return table("Flaps that may have done it", columns, rows, "No flap of a port here did it.")


def _price(incident: IncidentDetail) -> Iterator[Child]:
    lost = incident.lost_seconds
    if lost is None:
        yield element("p", "It is not known what it cost.")
    else:
        columns = [Column(""), Column("Likely", "number"), Column("Low to high", "number")]
        rows = list(_sum(incident, lost))
        yield table("From seconds to money", columns, rows, "", "narrow")
        if lost.assumed_share is not None:
            share = percent(lost.assumed_share) if lost.assumed_share else "Nothing"
            yield element("p", f"{share} of it rests on assumed values.")
    columns = [Column("Input"), Column("Value", "number"), Column("From", "number"),
               Column("To", "number"), Column("Who says so")]  # fmt: skip
    policy = (_given(name, given) for name, given in incident.policy.items())
    yield table("The policy in force", columns, policy, "No policy is known.", "narrow")


def _sum(incident: IncidentDetail, lost: LostItem) -> Iterator[tuple[Child, Child, Child]]:
    for name, text in _PARTS:
        value = getattr(lost, name)
        if value:
            yield f"+ {text}", f"{value:,.1f} s", ""
    ends = f"{figure(lost.low, 1)} to {figure(lost.high, 1)} s"
    yield "= lost by each GPU", f"{figure(lost.likely, 1)} s", ends
    if incident.affected_gpus is not None:
        yield "x GPUs that waited", f"{incident.affected_gpus:,}", ""
    found = incident.gpu_seconds
    if found is not None:
        ends = f"{figure(found.low)} to {figure(found.high)}"
        yield "= GPU-seconds", figure(found.likely), ends
    cost = incident.cost
    if cost is not None:
        yield _price_of_one(incident)
        ends = f"{figure(cost.low, 2)} to {figure(cost.high, 2)}"
        yield f"= {cost.currency}", figure(cost.likely, 2), ends


def _price_of_one(incident: IncidentDetail) -> tuple[Child, Child, Child]:
    cost, found = incident.cost, incident.gpu_seconds
    if cost is None or found is None or not cost.likely or not found.likely:
        return "x price of a GPU-hour", NOT_KNOWN, ""
    return "x price of a GPU-hour", f"{cost.likely / found.likely * 3600:,.2f}", ""


def _given(name: str, given: GivenItem) -> tuple[Child, ...]:
    ends = ("", "") if given.low == given.high else (_plain(given.low), _plain(given.high))
    return _NAMES.get(name, words(name)), _plain(given.value), *ends, source(given.source)


def _plain(value: object) -> str:
    if value is None:
        return "without end"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.10g}" if isinstance(value, int | float) else str(value)
