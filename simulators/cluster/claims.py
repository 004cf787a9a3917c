"""Claims: the incident that each agent tells for itself of what hurt a job on its node.

Each claims what the whole job lost, as far as it can know: only who sees all nodes counts once.
"""

from collections.abc import Iterator

from msgspec.structs import replace

from flapd.model.incident import Cause, Incident, Verdict
from flapd.model.loss import Range, Regime
from simulators.cluster.clock import NodeClock
from simulators.cluster.links import Down
from simulators.cluster.names import id_of, node_name, port_key, port_name
from simulators.cluster.placed import JobRun
from simulators.cluster.told import Told
from simulators.job.truth import Symptom, SymptomKind

_TOLD_SECONDS = 1.6
_QUIET_SECONDS = 60.0
_PRICE_PER_GPU_SECOND = 2.5 / 3600
_REGIMES: dict[SymptomKind, Regime] = {
    "stall": "absorbed",
    "error": "transport_abort",
    "timeout": "watchdog",
    "nothing": "watchdog",
}
_ORDINARY = frozenset({"checkpoint", "evaluation"})


def claims_told(one: JobRun, node: int, clock: NodeClock, watched_from: float) -> Iterator[Told]:
    """Once while it goes on, and once at the end."""
    for symptom in one.run.truth.symptoms:
        if symptom.begin < watched_from or symptom.cause in _ORDINARY:
            continue
        so_far = _claim(one, symptom, node, clock)
        yield Told(symptom.begin + _TOLD_SECONDS, replace(so_far, end_unix_ns=None, open=True))
        ended = max(symptom.end, symptom.begin + _TOLD_SECONDS) + _QUIET_SECONDS
        yield Told(ended, replace(so_far, revision=2))


def _claim(one: JobRun, symptom: Symptom, node: int, clock: NodeClock) -> Incident:
    guilty = [down for down in one.downs_in(symptom) if down.node == node]
    verdict: Verdict = "caused" if guilty else "elsewhere"
    seconds, gpus = symptom.lost.seconds, one.run.spec.world_size
    lost = Range(0.9 * seconds, seconds, 1.1 * seconds)
    regime = _REGIMES.get(symptom.kind)
    return Incident(
        id=id_of("incident", node_name(node), one.job, clock.ns(symptom.begin)),
        revision=1,
        node=node_name(node),
        job=one.job,
        begin_unix_ns=clock.unix(symptom.begin),
        end_unix_ns=clock.unix(symptom.end),
        open=False,
        verdict=verdict,
        blind_to=() if guilty else ("ports of the job's other nodes",),
        regime=regime,
        regimes={} if regime is None else {regime: 1.0},
        causes=tuple(_cause(down, symptom) for down in guilty),
        symptoms=(),
        world_size=gpus,
        affected_gpus=gpus,
        lost_seconds=lost,
        parts=None,
        assumed_share=0.0,
        gpu_seconds=_times(lost, gpus),
        cost=_times(lost, gpus * _PRICE_PER_GPU_SECOND),
        currency="USD",
        policy={},
        explanation=("The flap caused it." if guilty else "The cause is elsewhere.",),
        advice=(),
    )


def _cause(down: Down, symptom: Symptom) -> Cause:
    return Cause(
        flap=down.id,
        port=port_name(down.port),
        key=port_key(down.node, down.port),
        node=node_name(down.node),
        probability=0.99,
        chance=0.001,
        lag_seconds=symptom.begin - down.begin,
        symptom="",
    )


def _times(lost: Range, factor: float) -> Range:
    return Range(lost.low * factor, lost.likely * factor, lost.high * factor)
