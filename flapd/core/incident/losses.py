"""Losses: the regime that a story met, and the seconds that it cost; measured where it was seen."""

import math
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from flapd.core.cost.assumed import assumed_share
from flapd.core.cost.estimate import Estimate, estimate
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import after_death, money
from flapd.core.incident.blame import time_ns
from flapd.core.incident.evidence import begin_ns, end_ns
from flapd.core.incident.scene import Scene
from flapd.core.incident.spans import Span, union
from flapd.core.incident.story import Story
from flapd.core.incident.verdict import (
    death_of,
    resumed,
    shortest_stall_seconds,
    was_cut_off,
    would_show,
)
from flapd.model.fault import Fault
from flapd.model.given import Given, exactly
from flapd.model.incident import Verdict
from flapd.model.loss import Parts, Range, Regime
from flapd.model.times import SECOND_NS

BLAMED: frozenset[Verdict] = frozenset({"caused", "likely"})
_NOTHING = Range(0.0, 0.0, 0.0)


class Loss(msgspec.Struct, frozen=True):
    regimes: dict[Regime, float]
    """The chance of each; empty where no job was hit."""
    lost_seconds: Range
    parts: Parts
    assumed_share: float

    @property
    def regime(self) -> Regime | None:
        return max(self.regimes, key=lambda one: self.regimes[one], default=None)


def loss_of(story: Story) -> Loss | None:
    """None where no job is known that lost anything."""
    if story.scene.job is None and all(one.kind == "counter" for one in story.errors):
        return None
    death = death_of(story)
    if death is not None:
        return _of_death(story, death)
    if was_cut_off(story):
        return _of_end(story)
    if story.stalls:
        return _of_stalls(story)
    # A port that counted retries does not tell what became of a job.
    return _of_flaps(story) if story.outages else None


def gpu_seconds(lost: Range, story: Story) -> Range | None:
    """None where nobody knows how many GPUs stood still."""
    if story.scene.terms.affected_gpus is None:
        return None
    gpus = story.scene.terms.inputs.gpus
    return Range(lost.low * gpus.low, lost.likely * gpus.value, lost.high * gpus.high)


def cost_of(gpu: Range, story: Story) -> Range:
    price = story.scene.terms.inputs.price_per_gpu_hour
    return Range(
        money(gpu.low, price.low), money(gpu.likely, price.value), money(gpu.high, price.high)
    )


def shares_of(gpu: Range, story: Story, verdict: Verdict) -> dict[str, Range]:
    """What each outage of the story is charged with: together no more than the whole.

    Where nothing proves that it did anything, the low end is 0.
    """
    if story.decisive is None:
        return _split(gpu, {one.id: 1.0 for one in story.outages}, certain=False)
    if verdict not in BLAMED:
        return {}
    own = {one.id for one in story.outages}
    blamed = {
        share.outage.id: share.probability
        for share in story.decisive.shares
        if share.outage.id in own
    }
    return _split(gpu, blamed, certain=verdict == "caused")


def _split(gpu: Range, weights: dict[str, float], *, certain: bool) -> dict[str, Range]:
    whole = sum(weights.values())
    return {
        name: Range(
            gpu.low * weight / whole if certain else 0.0,
            gpu.likely * weight / whole,
            gpu.high * weight / whole,
        )
        for name, weight in weights.items()
        if weight > 0
    }


def _of_stalls(story: Story) -> Loss:
    """Measured; a stall that goes on is so far as long as it is.

    Traffic that was cut off in full flow might have paused soon after: at least so much less.
    """
    spans = union(_stall_spans(story))
    usual = sum(stall.expected_seconds for stall in story.stalls) / len(story.stalls)
    error = 2 * max(stall.resolution_ns for stall in story.stalls) / SECOND_NS
    whole = sum(end - begin for begin, end in spans) / SECOND_NS
    slack = story.scene.terms.inputs.slack_seconds
    likely = max(0.0, whole - len(spans) * (usual + slack.value))
    most_hidden = max(usual, _longest_pause(story)) + slack.high + error
    low = max(0.0, whole - len(spans) * most_hidden)
    lost = Range(min(low, likely), likely, whole + error)
    inputs = _measured(story.scene.terms.inputs, whole)
    parts = Parts(stall=likely)
    share = 1.0 if inputs.gpus.is_assumed else 0.0
    if resumed(story):
        return Loss({"absorbed": 1.0}, lost, parts, share)
    return Loss(_regimes_so_far(inputs), lost, parts, share)


def _longest_pause(story: Story) -> float:
    """Of an ordinary step; what is half as long again is a stall (core/job/stall/rhythm.py)."""
    known = [job.shortest_stall_seconds or 0.0 for job in story.scene.jobs]
    return max(known, default=0.0) / 1.5


def _regimes_so_far(inputs: Inputs) -> dict[Regime, float]:
    """Of a stall that goes on: it is not hidden."""
    chances = {name: p for name, p in estimate(inputs).regimes.items() if name != "hidden"}
    whole = sum(chances.values())
    return {name: p / whole for name, p in chances.items()} if whole else {"absorbed": 1.0}


def _stall_spans(story: Story) -> list[Span]:
    until_ns = story.scene.until_ns
    ends = [(stall, stall.end_unix_ns) for stall in story.stalls]
    return [
        (stall.begin_unix_ns, max(stall.begin_unix_ns, until_ns if end is None else end))
        for stall, end in ends
    ]


def _of_death(story: Story, death: Fault) -> Loss:
    """From the down or the first stillness to the error; from it to the next traffic."""
    regime = _regime_of(death, story)
    inputs = story.scene.terms.inputs
    if regime == "failover":
        return replace(_of_stalls(story), regimes={"failover": 1.0})
    back_ns = _back_ns(story, death)
    if back_ns is not None:
        waited = (back_ns - time_ns(death)) / SECOND_NS
        inputs = replace(
            inputs,
            propagation_seconds=exactly(0.0, "measured"),
            restart_seconds=exactly(waited, "measured"),
        )
    elif was_cut_off(story):
        ended_ns = max(end for _, end in _stall_spans(story))
        waited = max(0.0, (ended_ns - time_ns(death)) / SECOND_NS)
        inputs = replace(inputs, propagation_seconds=exactly(waited, "measured"))
    detect, measured = _detect_seconds(story, death)
    return _died(regime, _measured(inputs, detect.value) if measured else inputs, detect)


def _of_end(story: Story) -> Loss:
    """The job stood still until it was over, and nobody said why."""
    inputs = replace(story.scene.terms.inputs, propagation_seconds=exactly(0.0, "measured"))
    waited = sum(end - begin for begin, end in union(_stall_spans(story))) / SECOND_NS
    patient = waited >= inputs.watchdog_seconds.low - inputs.enqueued_seconds.high
    regime: Regime = "watchdog" if patient else "transport_abort"
    return _died(regime, _measured(inputs, waited), exactly(waited, "measured"))


def _died(regime: Regime, inputs: Inputs, detect: Given[float]) -> Loss:
    least, most = after_death(inputs.least(), detect.low), after_death(inputs.most(), detect.high)
    parts = after_death(inputs.likely(), detect.value)
    lost = Range(least.lost, parts.lost, most.lost)
    return Loss({regime: 1.0}, lost, parts, assumed_share(inputs, regime, parts))


def _measured(inputs: Inputs, seconds: float) -> Inputs:
    """As if its timers had been seen, since what they did was."""
    return replace(
        inputs,
        down_seconds=exactly(seconds, "measured"),
        ib_timeout=replace(inputs.ib_timeout, source="measured"),
        retry_cnt=replace(inputs.retry_cnt, source="measured"),
        watchdog_seconds=replace(inputs.watchdog_seconds, source="measured"),
    )


def _regime_of(death: Fault, story: Story) -> Regime:
    if death.kind in ("watchdog_timeout", "heartbeat"):
        return "watchdog"
    if story.scene.terms.inputs.failover.value and resumed(story):
        return "failover"
    return "transport_abort"


def _back_ns(story: Story, death: Fault) -> int | None:
    """The first traffic after the death."""
    ends = [stall.end_unix_ns or 0 for stall in story.stalls]
    later = [end for end in ends if end > time_ns(death)]
    return min(later) if later and resumed(story) else None


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
        lag = max(0.0, top.lag_seconds)
        return Given(lag, max(0.0, lag - error), lag + error, "measured"), True
    return _detect_by_model(story, death), False


def _detect_by_model(story: Story, death: Fault) -> Given[float]:
    """Nothing for what no timer of the model explains."""
    if _regime_of(death, story) == "watchdog":
        waited = story.scene.terms.inputs.watchdog_seconds
    else:
        budget = story.scene.terms.budget
        waited = Given(budget.nominal, budget.low, budget.high, "default")
    return waited if math.isfinite(waited.value) else exactly(0.0, "default")


def _of_flaps(story: Story) -> Loss:
    """Nobody saw the job stand still: by the model, or not at all where that would show."""
    found = [_estimate_of(span, story.scene) for span in _missing_spans(story)]
    chosen = max(found, key=lambda one: one.lost_seconds.likely)
    high = sum(one.lost_seconds.high for one in found)
    shortest = shortest_stall_seconds(story)
    if shortest is not None and would_show(story):
        longest = min(high, len(found) * shortest)
        return Loss({"hidden": 1.0}, Range(0.0, 0.0, longest), Parts(), 0.0)
    likely = sum(one.lost_seconds.likely for one in found)
    parts = _sum([one.parts for one in found])
    return Loss(chosen.regimes, Range(0.0, likely, high), parts, chosen.assumed_share)


def _missing_spans(story: Story) -> list[Span]:
    """Times without a path; outages that overlap stop the job once."""
    until_ns = story.scene.until_ns
    return union(
        (begin_ns(one), max(begin_ns(one), end_ns(one) or until_ns)) for one in story.outages
    )


def _estimate_of(span: Span, scene: Scene) -> Estimate:
    down = (span[1] - span[0]) / SECOND_NS
    return estimate(replace(scene.terms.inputs, down_seconds=exactly(down, "measured")))


def _sum(parts: Sequence[Parts]) -> Parts:
    names = Parts.__struct_fields__
    return Parts(**{name: sum(getattr(one, name) for one in parts) for name in names})
