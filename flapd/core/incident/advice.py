"""Advice: what to do now about one incident; never to drain a node for a single flap."""

import math
from collections.abc import Iterator

from msgspec.structs import replace

from flapd.core.incident.evidence import missing_seconds
from flapd.core.incident.losses import BLAMED
from flapd.core.incident.story import Story
from flapd.core.incident.verdict import death_of, is_all_here, resumed
from flapd.core.incident.words import clock, listed, plural, seconds
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.incident import Verdict
from flapd.model.loss import Regime
from flapd.model.times import SECOND_NS

_OFTEN = 3
"""Flaps of a port in a day from which on it is the port, not an accident."""
_TIMEOUTS = range(14, 26)
_MARGIN = 1.1


def advice_of(story: Story, verdict: Verdict, regime: Regime | None) -> tuple[str, ...]:
    """In the order in which to do it."""
    return tuple(dict.fromkeys(_advice(story, verdict, regime)))


def _advice(story: Story, verdict: Verdict, regime: Regime | None) -> Iterator[str]:
    if verdict in BLAMED:
        yield from _about_timeouts(story, regime)
    elif verdict == "elsewhere":
        yield from _look_elsewhere(story)
    elif verdict == "not_fabric":
        yield "Look at the job and its node, not at the links."
    elif verdict == "coincident" and story.blames:
        yield "Look for another cause first: a flap this long should not have ended the job."
    elif verdict == "unknown":
        yield from _see_more(story)
    yield from _about_ports(story)


def _about_timeouts(story: Story, regime: Regime | None) -> Iterator[str]:
    top = None if story.decisive is None else story.decisive.top
    if top is None or death_of(story) is None:
        if regime in ("absorbed", "hidden") and resumed(story):
            yield "Nothing to do for the job: it went on by itself."
        return
    missing = missing_seconds(top.outage, story.scene.until_ns).value
    if top.start_ns is not None:
        node = f" on {top.outage.node}" if story.scene.evidence.is_fleet else ""
        yield f"Start the job on other nodes, or once {top.outage.port}{node} is up again."
    elif top.outage.up is None:
        yield f"{top.outage.port} is still down: no timeout would have helped so far."
    elif regime == "watchdog" and not story.scene.terms.inputs.coordinated.value:
        yield "Run an NCCL that hands errors on (2.19 or later): this one hangs until the watchdog."
    else:
        yield from _raise_timeout(story, missing)


def _raise_timeout(story: Story, missing: float) -> Iterator[str]:
    """The smallest timeout whose budget covers the flap with a margin."""
    timer = replace(story.scene.terms.inputs.likely().timer, retry_cnt=7)
    longer = [replace(timer, ib_timeout=one) for one in _TIMEOUTS]
    fitting = next((one for one in longer if one.budget_seconds >= _MARGIN * missing), None)
    now = story.scene.terms.inputs
    if fitting is None or math.isinf(story.scene.terms.budget.nominal):
        return
    if fitting.budget_seconds <= story.scene.terms.budget.nominal:
        return
    yield (
        f"Set NCCL_IB_TIMEOUT={fitting.ib_timeout} and NCCL_IB_RETRY_CNT=7 (now "
        f"{now.ib_timeout.value} and {now.retry_cnt.value}): a budget of "
        f"{seconds(fitting.budget_seconds)} waits {seconds(missing)} out, at the price that every "
        f"short flap may stall the job for {seconds(fitting.tick_seconds)}."
    )


def _look_elsewhere(story: Story) -> Iterator[str]:
    decisive = story.decisive
    assert decisive is not None
    at_ns = decisive.symptom
    ns = at_ns.begin_unix_ns if not isinstance(at_ns, Fault) else at_ns.time_ns or 0
    first = clock(ns - round(decisive.window.high * SECOND_NS))
    last = clock(ns - round(decisive.window.low * SECOND_NS))
    whole = story.scene.evidence.is_fleet and is_all_here(story.scene)
    where = "links between switches" if whole else "the ports of the job's other nodes"
    yield f"Look at {where}, for downs from {first} to {last} UTC."
    lagging = sorted({rank for one in story.scene.standings for rank in one.lagging})
    if lagging:
        yield f"Begin with rank {listed([str(rank) for rank in lagging])}: furthest behind."
    elif isinstance(at_ns, Fault) and at_ns.kind == "watchdog_timeout":
        yield "Begin with the rank whose last completed sequence number is the lowest."


def _see_more(story: Story) -> Iterator[str]:
    said = [one for job in story.scene.jobs for one in job.blind_to]
    if said:
        yield f"Let flapd see more next time: {listed(said)}."
    if not story.blames and story.scene.job is not None:
        yield "Compare with the job's own step times: its traffic was not seen well enough."


def _about_ports(story: Story) -> Iterator[str]:
    is_fleet = story.scene.evidence.is_fleet
    for outage in {one.key: one for one in story.outages}.values():
        port = f"{outage.port} of {outage.node}" if is_fleet else outage.port
        there = " there" if is_fleet else ""
        if outage.up is None and outage.status == "open":
            yield f"{port} is down: look at its cable, module and the switch's side."
        elif (often := _flaps_in_a_day(outage, story)) >= _OFTEN:
            yield (
                f"{port} had {plural(often, 'flap')} within a day: replace its cable or "
                f"module when the node is free, then tell `flapd repaired {outage.port}`{there}."
            )


def _flaps_in_a_day(outage: Outage, story: Story) -> int:
    last_ns = max(one.down.latest_unix_ns for one in story.outages)
    return story.scene.background.flaps_in_a_day(outage.key, last_ns)
