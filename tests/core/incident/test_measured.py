"""Stalls that tell what the timers of this node take, and what is told differently from then on."""

from typing import Any

import msgspec
import pytest

from flapd.core.cost.calibration import Retry
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.incident.desk import IncidentDesk, IncidentsRecord
from flapd.model.given import Given
from flapd.model.incident import Incident
from flapd.model.observation import READ_WITNESS, ClockPair, PortSeen, Sample, Tick
from flapd.model.times import SECOND_NS
from tests.core.incident.parts import BEGIN, PORTS, job, outage, policy, stall, transport_error
from tests.core.incident.sets import Item

TICK = 4.294967296
EVERY = 1000.0


class Desk:
    """Hears of a flap every so often, and of the stall that it brought."""

    def __init__(self, settings: JobSettings | None = None, **known: Given[Any]) -> None:
        self._settings = settings or JobSettings()
        self.of_record(IncidentsRecord())
        self._take(ClockPair(0, BEGIN * SECOND_NS, "boot1"))
        for port in PORTS.values():
            self._take(PortSeen(port, 0))
        self._now = 0.0
        self.told: list[Incident] = []
        self.hear(1.0, job(policy=policy() | known))

    def of_record(self, record: IncidentsRecord) -> None:
        self.desk = IncidentDesk("node7", self._settings, CostSettings(), record)

    def _take(self, observation: Any) -> list[Incident]:
        return [
            one
            for one in self.desk.takes[type(observation)](observation)
            if isinstance(one, Incident)
        ]

    def hear(self, at: float, *items: Item) -> None:
        self.desk.hears(items)
        for seconds in (0.0, 1.0, 70.0, 75.0):
            ns = round((at + seconds) * SECOND_NS)
            for key in PORTS:
                self._take(Sample(key, ns, ns, READ_WITNESS, {}, {}))
            self.told += self._take(Tick(ns))
        self._now = at

    def flap(self, factor: float = 2.4, down: float = 2.0, **known: Any) -> None:
        """In full flow, of a card whose timers take so much longer than nominal."""
        at = self._now + EVERY
        lasted = factor * TICK
        self.hear(at + lasted + 1, outage(at, down), stall(at, lasted, **known))

    @property
    def retries(self) -> tuple[Retry, ...]:
        return self.desk.view().retries

    @property
    def latest(self) -> Incident:
        by_id = {one.id: one for one in self.told}
        return max(by_id.values(), key=lambda one: one.begin_unix_ns)


def budget_of(incident: Incident) -> float:
    budget = incident.causes[0].budget_seconds
    assert budget is not None
    return budget.high - budget.low


def test_after_three_flaps_that_agree_the_budget_is_told_as_it_was_measured() -> None:
    desk = Desk()
    desk.flap()
    wide = budget_of(desk.latest)
    desk.flap()
    desk.flap()

    (retry,) = desk.retries
    assert retry.is_enough
    assert retry.budget_factor.low <= 2.4 <= retry.budget_factor.high
    assert budget_of(desk.latest) < wide / 4
    assert any("measured on this node (3 flaps)" in one for one in desk.latest.explanation)


def test_what_is_configured_holds() -> None:
    desk = Desk(JobSettings(budget_factor=1.5))
    for _ in range(3):
        desk.flap()

    budget = desk.latest.causes[0].budget_seconds
    assert budget is not None
    assert budget.likely == pytest.approx(1.5 * 7 * TICK)


def test_what_contradicts_it_widens_the_budget_again_and_is_told() -> None:
    desk = Desk()
    for _ in range(3):
        desk.flap()
    sharp = budget_of(desk.latest)
    desk.flap(factor=1.2)

    (retry,) = desk.retries
    assert not retry.is_enough
    assert retry.contradicted == 3
    assert budget_of(desk.latest) > 4 * sharp


def test_it_survives_a_restart_and_what_is_forgotten_otherwise() -> None:
    desk = Desk()
    for _ in range(3):
        desk.flap()
    before = desk.retries
    encoded = msgspec.msgpack.encode(desk.desk.record)

    desk.of_record(msgspec.msgpack.decode(encoded, type=IncidentsRecord))
    desk.hear(200_000.0)

    assert desk.retries == before
    assert not desk.desk.record.memory.stalls


@pytest.mark.parametrize(
    "known",
    [{"expected_seconds": 1.5}, {"stall_class": "remote"}],
    ids=["in a pause", "not by a link"],
)
def test_a_stall_that_began_otherwise_tells_nothing_of_timers(known: dict[str, Any]) -> None:
    desk = Desk()
    desk.flap(**known)

    assert desk.retries == ()


def test_nor_does_one_with_two_outages_or_with_an_error_or_that_ended_too_soon() -> None:
    two, error, soon = Desk(), Desk(), Desk()
    two.hear(120.0, outage(100, 2), outage(103, 2, 1), stall(100, 10.3))
    error.hear(120.0, outage(100, 2), stall(100, 10.3), transport_error(108))
    soon.hear(120.0, outage(100, 9), stall(100, 4.3))

    assert two.retries == error.retries == soon.retries == ()


def test_nor_where_it_is_not_known_which_timers_were_at_work() -> None:
    adaptive = Desk(schedule=Given("fixed", "adaptive", "fixed", "default"))
    unknown = Desk(ib_timeout=Given(20, 18, 22, "default"))
    for desk in (adaptive, unknown):
        desk.flap()

        assert desk.retries == ()
