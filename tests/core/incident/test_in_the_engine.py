"""From samples of ports to the incident, through the whole engine."""

import pytest

from flapd.model.event import Event
from flapd.model.incident import Incident
from flapd.model.observation import READ_STATE, READ_WITNESS, Observation, Sample
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
