"""Incidents: what a set of evidence tells, as far as it tells it; the same for the same set."""

from collections.abc import Iterator

from flapd.core.incident import sayings
from flapd.core.incident.account import events_in_order, reasons_of, rho_of
from flapd.core.incident.advice import advice_of
from flapd.core.incident.blame import LIKELY, Blame
from flapd.core.incident.closing import is_open, last_ns
from flapd.core.incident.evidence import Evidence
from flapd.core.incident.loss import Loss
from flapd.core.incident.losses import cost_of, gpu_seconds, loss_of, shares_of
from flapd.core.incident.policy_words import policy_sentence
from flapd.core.incident.scene import scenes_of
from flapd.core.incident.story import Story, stories_of
from flapd.core.incident.verdict import blind_to, is_seen_whole, verdict_of
from flapd.core.incident.words import between, listed, percent, seconds
from flapd.model.incident import Cause, Incident, Verdict
from flapd.model.loss import Range

MOST_SYMPTOMS = 64
"""What is told of one incident; the errors nearest to the cause first."""
MOST_FLAPS = 256
_MOST_CAUSES = 16


def incidents_of(evidence: Evidence) -> list[Incident]:
    """In order of time; revision 0, and superseding nothing: that is for who told others before."""
    stories = (story for scene in scenes_of(evidence) for story in stories_of(scene))
    return sorted(
        (incident_of(one) for one in stories), key=lambda one: (one.begin_unix_ns, one.id)
    )


def incident_of(story: Story) -> Incident:
    terms, verdict, loss = story.scene.terms, verdict_of(story), loss_of(story)
    gpu = None if loss is None else gpu_seconds(loss.lost_seconds, story)
    goes_on = is_open(story)
    regime = None if loss is None else loss.regime
    return Incident(
        id=story.id,
        node=story.scene.evidence.node,
        job=story.scene.job,
        begin_unix_ns=story.begin_ns,
        end_unix_ns=None if goes_on else last_ns(story),
        open=goes_on,
        verdict=verdict,
        blind_to=blind_to(story),
        regime=regime,
        regimes={} if loss is None else loss.regimes,
        causes=_causes(story),
        symptoms=_symptoms(story),
        world_size=terms.world_size,
        affected_gpus=terms.affected_gpus,
        lost_seconds=None if loss is None else loss.lost_seconds,
        parts=None if loss is None else loss.parts,
        assumed_share=None if loss is None else loss.assumed_share,
        gpu_seconds=gpu,
        cost=None if gpu is None else cost_of(gpu, story),
        currency=story.scene.evidence.cost.currency,
        policy=dict(terms.policy),
        explanation=tuple(_explanation(story, verdict, loss, gpu)),
        advice=advice_of(story, verdict, regime),
        flap_gpu_seconds={} if gpu is None else shares_of(gpu, story, verdict),
        flaps=tuple(one.id for one in story.outages)[:MOST_FLAPS],
        another_cause=None if story.decisive is None else story.decisive.another,
    )


def _causes(story: Story) -> tuple[Cause, ...]:
    decisive = story.decisive
    if decisive is None:
        return ()
    return tuple(_cause(decisive, place, story) for place in range(len(decisive.shares)))[
        :_MOST_CAUSES
    ]


def _cause(blame: Blame, place: int, story: Story) -> Cause:
    share, budget = blame.shares[place], story.scene.terms.budget
    return Cause(
        flap=share.outage.id,
        port=share.outage.port,
        key=share.outage.key,
        node=share.outage.node,
        probability=share.probability,
        chance=share.chance,
        lag_seconds=share.lag_seconds,
        symptom=blame.symptom.id,
        rho=rho_of(share, blame, story),
        budget_seconds=Range(budget.low, budget.nominal, budget.high),
    )


def _symptoms(story: Story) -> tuple[str, ...]:
    followers = [one.id for one in story.followers if one.kind not in ("port_event", "kernel")]
    told = [one.symptom.id for one in story.blames] + followers
    return tuple(told[:MOST_SYMPTOMS])


def _explanation(
    story: Story, verdict: Verdict, loss: Loss | None, gpu: Range | None
) -> Iterator[str]:
    yield from events_in_order(story)
    if story.scene.job is not None:
        yield policy_sentence(story)
    if story.decisive is not None:
        yield from reasons_of(story.decisive, story)
    yield _said_of(verdict, story)
    if loss is not None:
        yield _loss_sentence(loss, gpu, story)
    unseen = list(blind_to(story))
    if unseen:
        yield f"Not seen: {listed(unseen, most=6)}."


def _said_of(verdict: Verdict, story: Story) -> str:
    alone = not story.blames
    if verdict == "coincident" and alone:
        return sayings.UNFELT
    if verdict == "unknown" and alone:
        return sayings.MODEL_ONLY
    if verdict == "not_fabric" and is_seen_whole(story.scene) and not story.outages:
        return sayings.ALL_CLEAN
    if verdict == "coincident" and story.decisive and story.decisive.probability >= LIKELY:
        return sayings.IN_ITS_PLACE
    return {
        "caused": sayings.CAUSED,
        "likely": sayings.LIKELY,
        "coincident": sayings.BESIDE,
        "elsewhere": (
            sayings.ELSEWHERE_IN_FLEET if story.scene.evidence.is_fleet else sayings.ELSEWHERE
        ),
        "not_fabric": sayings.NOT_FABRIC,
        "no_job": sayings.NO_JOB,
        "unknown": sayings.UNSEEN,
    }[verdict]


def _loss_sentence(loss: Loss, gpu: Range | None, story: Story) -> str:
    lost = loss.lost_seconds
    if lost.high == 0:
        return "Nothing was lost."
    if lost.likely == 0:
        return f"Lost: nothing that would show, and {seconds(lost.high)} at the most."
    whose = f" on each of {story.scene.terms.affected_gpus:,} GPUs" if gpu is not None else ""
    price = "" if gpu is None else f": {between(gpu, 'GPU-seconds')}"
    parts = _parts(loss)
    assumed = loss.assumed_share
    seen = "measured" if story.stalls else "by the model"
    rests = f"; {percent(assumed)} of it rests on assumptions" if assumed else f"; {seen}"
    made = f" ({parts})" if parts else ""
    so_far = " so far" if is_open(story) else ""
    return f"Lost{so_far}: {seconds(lost.likely)}{whose}{made}{price}{rests}."


def _parts(loss: Loss) -> str:
    parts = loss.parts
    names = {
        "standing still": parts.stall,
        "until it was noticed": parts.detect,
        "until it was down": parts.propagation,
        "to run again": parts.restart,
        "of work to do again": parts.rework,
    }
    told = [f"{seconds(value)} {name}" for name, value in names.items() if value > 0]
    return listed(told, most=5) if len(told) > 1 else ""
