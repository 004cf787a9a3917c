"""The reasons of an advice, in sentences."""

import math
from collections.abc import Iterator, Sequence

from flapd.cli.text import length
from flapd.core.cost.best_timeout import RESAMPLES, Advice, Policy
from flapd.core.cost.durations import Durations
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.plan import Draining, PortPlan

FEW_OUTAGES = 10
_CHEAPER = 0.5
_LITTLE = 0.1
"""Of the longest outage: a margin that the next one may well exceed."""


def on_timeout(inputs: Inputs, outages: Durations, advice: Advice) -> Iterator[str]:
    """Why this timeout, how sure, and what to watch."""
    yield _compared(inputs, advice)
    yield _margin(outages, advice)
    yield _trade(inputs, advice)
    yield _sureness(outages, advice)
    if advice.fewest_retries < advice.best.retry_cnt:
        yield (
            f"{advice.fewest_retries} retries would do as well for these outages: "
            "the rest is a margin that costs nothing."
        )
    yield (
        "All by the nominal timers: a card may take up to four times as long, "
        "and then gives up later and waits longer."
    )


def _compared(inputs: Inputs, advice: Advice) -> str:
    best, now = advice.best, advice.in_force
    said = f"timeout {now.ib_timeout} with {now.retry_cnt} retries ({inputs.ib_timeout.source})"
    if math.isclose(best.expected_seconds, now.expected_seconds, rel_tol=1e-6):
        return f"Keep {said}: for these outages nothing costs less, {_lost(now)}."
    return (
        f"NCCL_IB_TIMEOUT={best.ib_timeout} with NCCL_IB_RETRY_CNT={best.retry_cnt} would have "
        f"cost least: {_lost(best)}, against {_lost(now)} under {said}."
    )


def _lost(policy: Policy) -> str:
    seconds = policy.expected_seconds
    told = "without end" if math.isinf(seconds) else f"{seconds:,.2f} s"
    return f"{told} a flap and GPU"


def _margin(outages: Durations, advice: Advice) -> str:
    budget = advice.best.budget_seconds
    left = budget - outages.longest_seconds
    longest = f"{outages.longest_seconds:,.2f} s"
    told = f"It retries for {budget:,.2f} s; the longest outage lasted {longest}"
    if left < 0:
        return f"{told} and kills the job even so: waiting that long on every flap costs more."
    if left > _LITTLE * outages.longest_seconds:
        return f"{told}: {left:,.2f} s to spare."
    return f"{told}: {left:,.2f} s to spare, which is little.{_next(advice)}"


def _next(advice: Advice) -> str:
    """The same retries with twice the patience."""
    best = advice.best
    longer = [
        one
        for one in advice.policies
        if (one.ib_timeout, one.retry_cnt) == (best.ib_timeout + 1, best.retry_cnt)
    ]
    return "".join(
        f" Timeout {one.ib_timeout} retries for {one.budget_seconds:,.2f} s and costs {_lost(one)}."
        for one in longer
    )


def _trade(inputs: Inputs, advice: Advice) -> str:
    case = inputs.likely()
    death = case.propagation_seconds + case.restart_seconds + case.checkpoint_age_seconds
    told = f"A death costs {death:,.0f} s on top of the wait ({_sources(inputs)})"
    if case.schedule == "adaptive":
        return f"{told}; adaptive retries come early, so that patience costs short flaps little."
    tick = advice.best.budget_seconds / advice.best.retry_cnt
    return (
        f"{told}; against that stands the wait on every flap for a retry, every {tick:,.2f} s: "
        "so it is the shortest timer that outlasts enough of them, not the longest."
    )


def _sources(inputs: Inputs) -> str:
    """Who says what a death costs, each once."""
    given = (inputs.propagation_seconds, inputs.restart_seconds, inputs.checkpoint_age_seconds)
    return ", ".join(dict.fromkeys(one.source for one in given))


def _sureness(outages: Durations, advice: Advice) -> str:
    told = (
        f"It is the best in {advice.confidence:.0%} of {RESAMPLES} resamples of these outages; "
        f"nine in ten of them expect {_seconds(advice.expected_low)} to "
        f"{_seconds(advice.expected_high)} a flap."
    )
    if len(outages.outages) < FEW_OUTAGES:
        return f"{told} But {len(outages.outages)} outages are few: take it as a hint."
    return told


def _seconds(value: float) -> str:
    return "endless" if math.isinf(value) else f"{value:,.2f} s"


def on_draining(draining: Draining | None, advice: Advice) -> Iterator[str]:
    """When it pays to take a node out, and which."""
    if draining is None:
        yield "Whether to drain is not told: give --gpus W, or set job.world_size."
        return
    yield _break_even(draining)
    yield from _with_the_best(draining, advice)
    if draining.ports:
        yield from _ports(draining.ports, draining.most_nodes)


def _break_even(draining: Draining) -> str:
    told = f"A planned drain costs {draining.gpu_seconds:,.0f} GPU-s"
    flaps, rate = draining.break_even_flaps, draining.break_even_per_hour
    if flaps is None or rate is None:
        return f"{told}, and these flaps cost nothing: it never pays."
    return (
        f"{told}, as much as {flaps:,.2f} such flaps: for a job that runs on for "
        f"{length(draining.remaining_seconds)} it pays above {rate:,.4g} an hour."
    )


def _with_the_best(draining: Draining, advice: Advice) -> Iterator[str]:
    """What kills under one timeout is waited out under another: then no drain is worth it."""
    best, now = advice.best.expected_seconds, advice.in_force.expected_seconds
    if draining.break_even_flaps and 0 < best < _CHEAPER * now < math.inf:
        flaps = draining.break_even_flaps * now / best
        yield (
            f"Under the timeout advised here it would take {flaps:,.2f} flaps: "
            "change that first where you can."
        )


def _ports(ports: Sequence[PortPlan], most: int) -> Iterator[str]:
    worst = ports[0]
    drained = list(dict.fromkeys(_node(one) for one in ports if one.step == "drain"))
    if worst.gpu_seconds_per_day > 0:
        yield f"Look at the cable of {named(worst)} first: it costs most."
    yield f"Drain {', '.join(drained)}, at the next checkpoint." if drained else "Drain nothing."
    waiting = list(dict.fromkeys(_node(one) for one in ports if one.step == "wait"))
    if waiting:
        yield (
            f"{', '.join(waiting)} would pay too, and wait: no more than {most} at once. "
            "Where many want it, look for what they share."
        )
    shared = sum(one.shared for one in ports)
    if shared:
        yield (
            f"{shared} downs came together with those of all other ports of the node, or of "
            "several nodes: a switch, a subnet manager, planned work. No drain helps there."
        )


def named(one: PortPlan) -> str:
    return f"{one.node} {one.port}".strip()


def _node(one: PortPlan) -> str:
    return one.node or "this node"
