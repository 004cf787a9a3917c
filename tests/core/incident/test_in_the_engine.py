"""From samples of ports to the incident, through the whole engine."""

import pytest

from flapd.model.event import Event
from flapd.model.incident import Incident
from flapd.model.observation import (
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    Observation,
    Sample,
)
from flapd.model.stall import Stall
from tests.core.job.node import KEYS, Node, ns, samples

STALLED_AT = 151.7
BURSTS = [
    *((1 + 2.0 * step, 2.4 + 2.0 * step) for step in range(75)),
    (151.0, STALLED_AT),
    (STALLED_AT + 4.3, STALLED_AT + 5.0),
    *((158 + 2.0 * step, 159.4 + 2.0 * step) for step in range(60)),
]


def state(at: float, value: int) -> Sample:
    reads = READ_WITNESS | READ_STATE
    return Sample(KEYS[0], ns(at), ns(at) + 50_000, reads, {"state": value, "phys_state": 5})


def observed() -> list[Observation]:
    """A port goes down for 2 s in full flow, and traffic comes back 4.3 s after it stopped."""
    before = samples(BURSTS, 151.9, downs=[(KEYS[0], STALLED_AT)])
    after = samples(BURSTS, 250, begin=151.9, downs=[(KEYS[0], STALLED_AT)])
    return [*before, state(151.8, 1), *(_with_state(one) for one in after)]


def _with_state(one: Observation) -> Observation:
    if not isinstance(one, Sample) or one.key != KEYS[0]:
        return one
    up = one.before_ns >= ns(STALLED_AT + 2)
    values = {**one.values, "state": 4 if up else 1, "phys_state": 5}
    return Sample(one.key, one.before_ns, one.after_ns, READ_WITNESS | READ_STATE, values)


def test_a_flap_that_stalled_a_job_becomes_one_incident_with_its_price() -> None:
    node = Node()
    node.job(0, environment={"NCCL_IB_TIMEOUT": "20"})
    node.take(*observed())

    (incident,) = node.last(Incident)
    assert (incident.verdict, incident.regime, incident.open) == ("caused", "absorbed", False)
    assert incident.gpu_seconds is not None
    assert incident.gpu_seconds.low < 4.3 * 64 < incident.gpu_seconds.high < 6 * 64
    assert [cause.port for cause in incident.causes] == ["mlx5_0/1"]
    view = node.engine.snapshot().incidents
    assert view.totals.incidents["caused"] == 1
    assert list(view.totals.claims) == ["mlx5_0/1"]


@pytest.mark.parametrize("cut", [0.1, 0.62, 0.63, 0.66, 0.9])
def test_a_restart_in_between_changes_no_event(cut: float) -> None:
    stream = observed()
    place = round(cut * len(stream))

    assert _told(stream, None) == _told(stream, place)


def _told(stream: list[Observation], restart_before: int | None) -> list[Event]:
    node = Node()
    node.job(0)
    for place, one in enumerate(stream):
        if place == restart_before:
            node.restart()
        node.take(one)
    return node.told


def killed(at: float, back: float) -> Node:
    """Nobody reads the ports in between; the first reading after it tells all there is to tell."""
    node, values, anew = Node(), dict[str, dict[str, int]](), set[str]()
    node.job(0, environment={"NCCL_IB_TIMEOUT": "20"})
    is_away = False
    for one in observed():
        now_ns = one.before_ns if isinstance(one, Sample) else getattr(one, "monotonic_ns", 0)
        if isinstance(one, Sample):
            values.setdefault(one.key, {}).update(one.values)
        if ns(at) <= now_ns < ns(back):
            is_away = True
            continue
        if is_away:
            is_away, anew = False, set(KEYS)
            node.restart()
        if isinstance(one, Sample) and one.key in anew:
            anew.discard(one.key)
            node.take(_first(one, values[one.key]))
        else:
            node.take(one)
    return node


def _first(one: Sample, values: dict[str, int]) -> Sample:
    reads = one.reads | READ_FIRST | READ_STATE
    return Sample(one.key, one.before_ns, one.after_ns, reads, dict(values))


@pytest.mark.parametrize("back", [157.0, 165.0])
def test_whether_a_job_stood_still_while_nobody_looked_is_not_known(back: float) -> None:
    (incident,) = killed(STALLED_AT + 0.25, back).last(Incident)

    assert incident.verdict == "unknown"
    assert "the traffic of the job: whether it stood still" in incident.blind_to
    assert incident.lost_seconds is not None
    assert incident.lost_seconds.low < 4.3 < incident.lost_seconds.high


@pytest.mark.parametrize(("at", "back"), [(153.0, 157.0), (154.5, 165.0), (155.5, 170.0)])
def test_a_stall_whose_end_nobody_saw_may_have_ended_at_any_time_meanwhile(
    at: float, back: float
) -> None:
    node = killed(at, back)

    (incident,), (stall,) = node.last(Incident), node.last(Stall)
    assert incident.verdict == "caused"
    assert "when traffic came back" in incident.blind_to
    assert incident.lost_seconds is not None
    assert incident.lost_seconds.low < 4.3 < incident.lost_seconds.high
    assert stall.end_ns is not None
    assert stall.end_ns - stall.end_unseen_ns <= ns(STALLED_AT + 4.3) <= stall.end_ns
