"""Deaths: what it cost that a job stood still for good, ended, and was started again or not."""

import math

from msgspec.structs import replace

from flapd.core.cost.assumed import assumed_share
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import after_death
from flapd.core.incident.attempts import back_ns, gone_ns
from flapd.core.incident.blame import time_ns
from flapd.core.incident.loss import Loss
from flapd.core.incident.rework import checkpoint_age
from flapd.core.incident.story import Story, longest_ns
from flapd.core.incident.verdict import resumed
from flapd.core.spans import Span, union
from flapd.model.fault import Fault
from flapd.model.given import Given, exactly
from flapd.model.loss import Range, Regime
from flapd.model.times import SECOND_NS


def death_loss(story: Story, death: Fault) -> Loss:
    """From the down or the first stillness to the error; from it to the next traffic."""
    detect, is_seen = _detect_seconds(story, death)
    dead_ns = time_ns(death)
    inputs = _with_way_back(story, dead_ns)
    stopped_ns = dead_ns - round(detect.value * SECOND_NS)
    inputs = replace(inputs, checkpoint_age_seconds=checkpoint_age(story.scene, stopped_ns))
    regime = regime_of_death(death, story)
    return _died(regime, measured(inputs, detect.value) if is_seen else inputs, detect)


def end_loss(story: Story) -> Loss:
    """The job stood still until it was over, and nobody said why."""
    spans = union(_last_stillness(story))
    begin_ns, over_ns = spans[0][0], spans[-1][1]
    inputs = _with_way_back(story, over_ns)
    inputs = replace(inputs, checkpoint_age_seconds=checkpoint_age(story.scene, begin_ns))
    waited = sum(end - begin for begin, end in spans) / SECOND_NS
    patient = waited >= inputs.watchdog_seconds.low - inputs.enqueued_seconds.high
    regime: Regime = "watchdog" if patient else "transport_abort"
    return _died(regime, measured(inputs, waited), exactly(waited, "measured"))


def measured(inputs: Inputs, seconds: float) -> Inputs:
    """As if its timers had been seen, since what they did was."""
    return replace(
        inputs,
        down_seconds=exactly(seconds, "measured"),
        ib_timeout=replace(inputs.ib_timeout, source="measured"),
        retry_cnt=replace(inputs.retry_cnt, source="measured"),
        watchdog_seconds=replace(inputs.watchdog_seconds, source="measured"),
    )


def regime_of_death(death: Fault, story: Story) -> Regime:
    if death.kind in ("watchdog_timeout", "heartbeat"):
        return "watchdog"
    if story.scene.terms.inputs.failover.value and resumed(story):
        return "failover"
    return "transport_abort"


def _last_stillness(story: Story) -> list[Span]:
    """That ended with the job; there is some."""
    return [
        (stall.begin_unix_ns, stall.end_unix_ns)
        for stall in story.stalls
        if stall.end_unix_ns is not None and story.scene.was_cut_off(stall)
    ]


def _with_way_back(story: Story, dead_ns: int) -> Inputs:
    """How long it took until all was over, and until data moved again, as far as it was seen."""
    inputs, jobs = story.scene.terms.inputs, story.scene.jobs
    over_ns = gone_ns(jobs, dead_ns)
    if over_ns is None:
        # The processes stay: what is started anew is inside of them.
        over_ns, again_ns = dead_ns, _back_in_place_ns(story, dead_ns)
        if again_ns is not None:
            inputs = replace(inputs, propagation_seconds=_measured(0))
    else:
        again_ns = back_ns(jobs, dead_ns, story.begin_ns + longest_ns(story.scene))
        inputs = replace(inputs, propagation_seconds=_measured(over_ns - dead_ns))
    if again_ns is not None:
        inputs = replace(inputs, restart_seconds=_measured(max(0, again_ns - over_ns)))
    return inputs


def _measured(span_ns: int) -> Given[float]:
    return exactly(span_ns / SECOND_NS, "measured")


def _back_in_place_ns(story: Story, dead_ns: int) -> int | None:
    """The first traffic after the death."""
    ends = [stall.end_unix_ns or 0 for stall in story.stalls]
    later = [end for end in ends if end > dead_ns]
    return min(later) if later and resumed(story) else None


def _died(regime: Regime, inputs: Inputs, detect: Given[float]) -> Loss:
    least, most = after_death(inputs.least(), detect.low), after_death(inputs.most(), detect.high)
    parts = after_death(inputs.likely(), detect.value)
    lost = Range(least.lost, parts.lost, most.lost)
    return Loss({regime: 1.0}, lost, parts, assumed_share(inputs, regime, parts))


def _detect_seconds(story: Story, death: Fault) -> tuple[Given[float], bool]:
    """How long the job stood still until the error, and whether that was seen."""
    begins = [stall.begin_unix_ns for stall in story.stalls]
    begins = [begin for begin in begins if begin <= time_ns(death)]
    error = death.clock_error_ns / SECOND_NS
    if begins:
        seen = (time_ns(death) - min(begins)) / SECOND_NS
        return Given(seen, max(0.0, seen - error), seen + error, "measured"), True
    if death.ran_seconds is not None:
        ahead = story.scene.terms.inputs.enqueued_seconds.high
        ran = death.ran_seconds
        return Given(ran, max(0.0, ran - ahead), ran, "log"), True
    top = None if story.decisive is None else story.decisive.top
    if top is not None:
        waited = top.lag_seconds
        if top.start_ns is not None:
            waited = (time_ns(death) - top.start_ns) / SECOND_NS
        lag = max(0.0, waited)
        return Given(lag, max(0.0, lag - error), lag + error, "measured"), True
    return _detect_by_model(story, death), False


def _detect_by_model(story: Story, death: Fault) -> Given[float]:
    """Nothing for what no timer of the model explains."""
    if regime_of_death(death, story) == "watchdog":
        waited = story.scene.terms.inputs.watchdog_seconds
    else:
        budget = story.scene.terms.budget
        waited = Given(budget.nominal, budget.low, budget.high, "default")
    return waited if math.isfinite(waited.value) else exactly(0.0, "default")
