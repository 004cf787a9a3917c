"""What jobs lost is counted once, whatever is heard of it late, again, or after a restart."""

from typing import Any

import pytest

from flapd.core.fleet import FleetTotals
from flapd.core.fleet.totals import CountedLosses
from flapd.model.event import Event
from flapd.model.incident import Incident
from flapd.model.loss import Range
from tests.core.fleet.fleets import job, looked, outage, stall, stopped_by, view, watched
from tests.store.jobs import incident

NODES = 4


def counted(totals: FleetTotals) -> float:
    return sum(totals.gpu_seconds.values())


def blamed(name: str = "a", lost: float = 100.0, **known: Any) -> Incident:
    told: dict[str, Any] = {"verdict": "caused", "regime": "absorbed", "open": False}
    told["gpu_seconds"] = Range(0.9 * lost, lost, 1.1 * lost)
    return incident(name, **(told | known))


def taken(*told: Incident) -> FleetTotals:
    totals = FleetTotals()
    losses = CountedLosses(totals)
    for one in told:
        losses.take(one)
    return totals


def test_a_flap_that_is_heard_of_once_the_incident_is_over_is_counted_with_all_it_cost() -> None:
    """As after a network was cut: the nodes that were hit tell first."""
    fleet = view()
    watched(fleet, range(NODES))
    early: list[Event] = [*map(job, range(NODES)), *(stall(n, 100.2, 17.0) for n in range(NODES))]
    (first,) = looked(fleet, *early)
    before = counted(fleet.totals)
    (last,) = looked(fleet, outage(1, 100.0, 12.0), stopped_by(1, 100.2, 17.0, revision=2))

    assert (first.verdict, first.open, before) == ("elsewhere", False, 0.0)
    assert last.verdict == "caused"
    assert last.gpu_seconds is not None
    assert counted(fleet.totals) == last.gpu_seconds.likely
    assert sum(fleet.totals.incidents.values()) == 1


def test_what_is_found_later_is_counted_as_far_as_it_is_more_and_nothing_is_taken_back() -> None:
    assert counted(taken(blamed(lost=100.0), blamed(lost=130.0))) == pytest.approx(130.0)
    assert counted(taken(blamed(lost=100.0), blamed(lost=70.0), blamed(lost=100.0))) == 100.0
    assert counted(taken(blamed(), blamed(verdict="coincident"))) == 100.0
    assert counted(taken(blamed(gpu_seconds=Range(1.0, float("inf"), float("inf"))))) == 0.0


def test_what_becomes_another_regime_counts_the_rest_there() -> None:
    found = taken(blamed(lost=100.0), blamed(lost=500.0, regime="watchdog")).gpu_seconds

    assert (found["absorbed"], found["watchdog"]) == (100.0, 400.0)


def test_incidents_that_become_one_are_counted_together_and_once() -> None:
    parts = [blamed("a", 100.0), blamed("b", 50.0)]
    whole = blamed("c", 180.0, supersedes=("a", "b"))

    assert counted(taken(*parts, whole)) == pytest.approx(180.0)
    again = [blamed("a", 100.0), blamed("c", 80.0, supersedes=("b",))]
    assert counted(taken(*parts, whole, *again)) == pytest.approx(180.0)


def test_what_took_in_what_took_in_another_counts_only_what_is_more() -> None:
    chain = [
        blamed("a", 100.0),
        blamed("b", 180.0, supersedes=("a",)),
        blamed("c", 200.0, supersedes=("b",)),
    ]
    totals = taken(*chain)
    losses = CountedLosses(totals)
    losses.restore(chain)
    losses.take(blamed("c", 210.0, supersedes=("b",)))
    losses.take(chain[0])

    assert counted(totals) == pytest.approx(210.0)


def test_one_that_goes_on_is_counted_when_it_is_over() -> None:
    going_on = blamed(open=True)

    assert counted(taken(going_on)) == 0.0
    assert counted(taken(going_on, blamed(lost=120.0))) == 120.0


def test_one_that_was_over_and_goes_on_is_not_counted_again_by_a_hub_that_starts_meanwhile() -> (
    None
):
    before = taken(blamed(lost=100.0), blamed(lost=110.0, open=True))
    losses = CountedLosses(before)
    losses.restore([blamed(lost=110.0, open=True)])

    losses.forget({"a"})
    assert losses.is_counted("a")
    losses.take(blamed(lost=150.0))
    assert counted(before) == pytest.approx(150.0)
    assert before.otherwise == {}


def test_one_that_says_less_now_was_counted_with_more_also_after_a_restart() -> None:
    totals = taken(blamed(lost=1000.0), blamed(lost=600.0))
    losses = CountedLosses(totals)
    losses.restore([blamed(lost=600.0)])

    losses.take(blamed(lost=900.0))
    assert counted(totals) == pytest.approx(1000.0)
    losses.take(blamed(lost=1200.0))
    assert counted(totals) == pytest.approx(1200.0)
    assert totals.otherwise == {}


def test_what_is_forgotten_is_held_no_longer() -> None:
    totals = taken(blamed(), blamed(open=True))
    losses = CountedLosses(totals)
    losses.restore([])
    losses.forget(set())

    assert totals.otherwise == {}
    assert not losses.is_counted("a")
