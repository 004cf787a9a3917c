"""Losses: the regime that a story met, and the seconds that it cost; measured where it was seen."""

from collections.abc import Sequence

from msgspec.structs import replace

from flapd.core.cost.estimate import Estimate, estimate
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.price import money
from flapd.core.incident.deaths import death_loss, end_loss, measured, regime_of_death
from flapd.core.incident.evidence import begin_ns, end_ns
from flapd.core.incident.loss import Loss
from flapd.core.incident.scene import Scene
from flapd.core.incident.story import Story
from flapd.core.incident.verdict import (
    death_of,
    resumed,
    shortest_stall_seconds,
    was_cut_off,
    would_show,
)
from flapd.core.spans import Span, union
from flapd.model.given import exactly
from flapd.model.incident import Verdict
from flapd.model.loss import Parts, Range, Regime
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

BLAMED: frozenset[Verdict] = frozenset({"caused", "likely"})
_NOTHING = Range(0.0, 0.0, 0.0)


def loss_of(story: Story) -> Loss | None:
    """None where no job is known that lost anything."""
    if story.scene.job is None and all(one.kind == "counter" for one in story.errors):
        return None
    death = death_of(story)
    if death is not None and regime_of_death(death, story) == "failover":
        return replace(_of_stalls(story), regimes={"failover": 1.0})
    if death is not None:
        return death_loss(story, death)
    if was_cut_off(story):
        return end_loss(story)
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
    stalls = _explained(story)
    spans = union(_spans(stalls, story))
    usual = sum(stall.expected_seconds for stall in stalls) / len(stalls)
    error = 2 * max(stall.resolution_ns for stall in stalls) / SECOND_NS
    whole = sum(end - begin for begin, end in spans) / SECOND_NS
    slack = story.scene.terms.inputs.slack_seconds
    unseen = sum(stall.end_unseen_ns for stall in stalls) / SECOND_NS
    likely = max(0.0, whole - unseen / 2 - len(spans) * (usual + slack.value))
    most_hidden = max(usual, _longest_pause(story)) + slack.high + error
    low = max(0.0, whole - unseen - len(spans) * most_hidden)
    lost = Range(min(low, likely), likely, whole + error)
    inputs = measured(story.scene.terms.inputs, whole)
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


def _explained(story: Story) -> list[Stall]:
    """By a flap, where any is: a checkpoint that came soon after is none of its doing."""
    blamed = [one.symptom for one in story.blames if one.verdict in BLAMED]
    return [one for one in blamed if isinstance(one, Stall)] or story.stalls


def _spans(stalls: Sequence[Stall], story: Story) -> list[Span]:
    until_ns = story.scene.until_ns
    ends = [(stall, stall.end_unix_ns) for stall in stalls]
    return [
        (stall.begin_unix_ns, max(stall.begin_unix_ns, until_ns if end is None else end))
        for stall, end in ends
    ]


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
