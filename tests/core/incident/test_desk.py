"""The desk tells each incident as it becomes known, and all of it once it is over."""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.incident.desk import IncidentDesk, IncidentsRecord
from flapd.core.incident.incidents import incidents_of
from flapd.core.incident.memory import MOST_FAULTS
from flapd.core.incident.sayings import A_PAUSE, NOTHING, verdicts_in
from flapd.model.incident import Incident
from flapd.model.observation import READ_WITNESS, ClockPair, PortSeen, Sample, Tick
from flapd.model.times import SECOND_NS
from tests.core.incident.parts import (
    BEGIN,
    DAY,
    PORTS,
    evidence,
    fault,
    job,
    outage,
    stall,
    timeout,
    transport_error,
)
from tests.core.incident.sets import Item, before, sets

START = -DAY


def desk_of(record: IncidentsRecord | None = None) -> IncidentDesk:
    return IncidentDesk("node7", JobSettings(), CostSettings(), record or IncidentsRecord())


def ready(desk: IncidentDesk) -> IncidentDesk:
    """All ports are known, and were read since the day before."""
    # Monotonic time is negative there: the day before is before this boot's clock began.
    desk.takes[ClockPair](ClockPair(0, BEGIN * SECOND_NS, "boot1"))
    for port in PORTS.values():
        desk.takes[PortSeen](PortSeen(port, 0))
    tick(desk, START)
    return desk


def read(desk: IncidentDesk, at: float) -> None:
    for key in PORTS:
        desk.takes[Sample](Sample(key, _ns(at), _ns(at), READ_WITNESS, {}, {}))


def tick(desk: IncidentDesk, at: float) -> list[Incident]:
    read(desk, at)
    told = desk.takes[Tick](Tick(_ns(at)))
    assert all(isinstance(one, Incident) for one in told)
    return [one for one in told if isinstance(one, Incident)]


def hear(desk: IncidentDesk, at: float, *items: Item) -> list[Incident]:
    desk.hears(items)
    return tick(desk, at)


def latest(told: Iterable[Incident]) -> dict[str, Incident]:
    return {one.id: one for one in told}


def _ns(at: float) -> int:
    return round(at * SECOND_NS)


def test_an_incident_is_told_as_it_becomes_known() -> None:
    desk = ready(desk_of())
    assert hear(desk, 0, job()) == []

    (down,) = hear(desk, 101, outage(100, None))
    (stopped,) = hear(desk, 103, stall(100.1, None))
    (back,) = hear(desk, 105, outage(100, 2, revision=2), stall(100.1, 4.3, revision=2))
    (closed,) = tick(desk, 166)

    assert {one.id for one in (down, stopped, back, closed)} == {down.id}
    assert [one.revision for one in (down, stopped, back, closed)] == [1, 2, 3, 4]
    assert [one.verdict for one in (down, stopped, back, closed)] == [
        "unknown",
        "caused",
        "caused",
        "caused",
    ]
    assert [one.open for one in (down, stopped, back, closed)] == [True, True, True, False]
    assert desk.view().open == 0


def test_time_alone_is_no_news() -> None:
    desk = ready(desk_of())
    hear(desk, 103, job(), outage(100, None), stall(100.1, None))

    told = [one for second in range(104, 124) for one in tick(desk, second)]

    assert len(told) < 12
    assert [one.revision for one in told] == list(range(2, 2 + len(told)))


def test_a_loss_is_counted_once_when_the_incident_is_over() -> None:
    desk = ready(desk_of())
    hear(desk, 106, job(), outage(100, 2), stall(100.1, 4.3))
    assert desk.view().totals.incidents["caused"] == 0

    tick(desk, 200)
    tick(desk, 300)
    totals = desk.view().totals

    assert totals.incidents["caused"] == 1
    claim = totals.claims["mlx5_0/1"]["absorbed"]
    assert math.isclose(claim.likely, 4.3 * 1024)
    assert 0 < claim.low < claim.likely


def test_nothing_is_claimed_for_what_was_not_caused_here() -> None:
    desk = ready(desk_of())
    hear(desk, 1000, job(), stall(100, 30, stall_class="remote"), timeout(900, ran=20.0))
    tick(desk, 2000)

    totals = desk.view().totals
    assert totals.incidents["elsewhere"] == 2
    assert totals.claims == {}


def test_what_began_earlier_than_was_known_takes_the_place_of_what_was_told() -> None:
    desk = ready(desk_of())
    (first,) = hear(desk, 5032, job(), transport_error(5030.9))
    (second,) = hear(desk, 5040, outage(5000, 35))

    assert second.id != first.id
    assert second.supersedes == (first.id,)
    assert (first.verdict, second.verdict) == ("elsewhere", "caused")
    tick(desk, 6000)
    assert sum(desk.view().totals.incidents.values()) == 1


def test_two_incidents_that_turn_out_to_be_one_are_told_as_one() -> None:
    desk = ready(desk_of())
    told = hear(desk, 900, job(), stall(100, 30, stall_class="remote"), transport_error(900))
    assert len(told) == 2

    (one,) = hear(desk, 910, stall(100, None, stall_class="remote", revision=2))

    assert one.id == min(told, key=lambda each: each.begin_unix_ns).id
    assert one.supersedes == (max(told, key=lambda each: each.begin_unix_ns).id,)


def test_a_stall_that_turns_out_to_be_a_checkpoint_is_withdrawn() -> None:
    desk = ready(desk_of())
    (told,) = hear(desk, 130, job(), stall(100, None, stall_class="unknown"))
    (withdrawn,) = hear(desk, 131, stall(100, 30, stall_class="checkpoint", revision=2))

    assert withdrawn.id == told.id
    assert (withdrawn.verdict, withdrawn.open) == ("not_fabric", False)
    assert withdrawn.explanation[-1] == A_PAUSE
    assert verdicts_in(withdrawn.explanation) == ["not_fabric"]
    assert withdrawn.gpu_seconds is None
    assert tick(desk, 132) == []


def test_what_is_left_of_an_incident_takes_its_place() -> None:
    """A stall turns out to be the end of the job, whose error is still to be told."""
    desk = ready(desk_of())
    (told,) = hear(desk, 130, job(), stall(100, None, stall_class="unknown"), timeout(120, ran=20))
    (left,) = hear(desk, 131, stall(100, 30, stall_class="job_end", revision=2))

    assert left.id != told.id
    assert left.supersedes == (told.id,)
    assert left.symptoms == ("fault-watchdog_timeout-120",)


def test_an_incident_that_nobody_looked_at_in_time_is_closed_at_the_next_look() -> None:
    desk = ready(desk_of())
    (told,) = hear(desk, 103, job(), outage(100, None), stall(100.1, None))
    (closed,) = tick(desk, 7000)

    assert (told.open, closed.open, closed.id) == (True, False, told.id)


def test_what_was_told_long_ago_is_not_told_again() -> None:
    desk = ready(desk_of())
    hear(desk, 106, job(), outage(100, 2), stall(100.1, 4.3))
    tick(desk, 200)

    assert hear(desk, 8 * 3600, fault("process_death", 101)) == []
    assert desk.view().totals.incidents["caused"] == 1


def test_the_days_of_a_job_leave_little_in_memory() -> None:
    desk = ready(desk_of())
    hear(desk, 0, job())
    for hour in range(24):
        at = 3600 * hour + 100
        assert hear(desk, at + 6, outage(at, 2), stall(at + 0.1, 4.3))
        tick(desk, at + 3000)
    memory = desk.record.memory

    assert len(memory.outages) < 12
    assert len(desk.record.told) < 12
    assert desk.view().totals.incidents["caused"] == 24
    assert sum(map(len, memory.earlier_downs.values())) + len(memory.outages) == 24
    assert sum(map(len, memory.earlier_hits.values())) + len(memory.stalls) == 24
    last = max(desk.record.told.values(), key=lambda one: one.incident.begin_unix_ns).incident
    (said,) = [one for one in last.explanation if "within a day" in one]
    assert said.startswith("mlx5_0/1 flapped 24 times within a day, 24 of them with something")
    assert "with a probability of under 0.01 %" in said


def test_a_storm_of_messages_is_bounded_and_keeps_the_first_error() -> None:
    desk = ready(desk_of())
    storm = [
        fault("transport_error", 6000 + n / 1000, id=f"flush-{n}", status=5, primary=False)
        for n in range(MOST_FAULTS + 500)
    ]
    hear(desk, 6010, job(), transport_error(5999), *storm)
    tick(desk, 6100)

    assert len(desk.record.memory.faults) == MOST_FAULTS
    assert "fault-transport_error-5999" in desk.record.memory.faults


def test_a_new_boot_forgets_since_when_ports_were_watched() -> None:
    desk = ready(desk_of())
    desk.takes[ClockPair](ClockPair(_ns(9000), BEGIN * SECOND_NS + _ns(9000), "boot2"))

    (told,) = hear(desk, 10001, job(), timeout(10000))

    assert told.verdict == "unknown"


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    desk = ready(desk_of())
    hear(desk, 106, job(), outage(100, 2), stall(100.1, 4.3))
    desk.takes[ClockPair](ClockPair(_ns(107), (BEGIN - 7200 + 107) * SECOND_NS, "boot1"))
    assert [one.open for one in tick(desk, 108)] == []
    desk.takes[ClockPair](ClockPair(_ns(109), (BEGIN + 109) * SECOND_NS, "boot1"))

    assert [one.open for one in tick(desk, 170)] == [False]


WITHDRAWN = (A_PAUSE, NOTHING)
STEPS = st.lists(st.sampled_from([0.5, 1.0, 5.0, 30.0, 200.0]), min_size=0, max_size=6)


def play(desk: IncidentDesk, items: Sequence[Item], pauses: Sequence[float]) -> list[Incident]:
    """Some with time in between; then all is past, but not long enough to be final."""
    at, told = 2000.0, []
    for place, item in enumerate(items):
        desk.hears([item])
        if place < len(pauses):
            at += pauses[place]
            told += tick(desk, at)
    return [*told, *tick(desk, 4200), *tick(desk, 5200)]


def shown(told: Iterable[Incident]) -> list[Incident]:
    """The last of each that none took the place of, but for how it came to be."""
    by_id = latest(told)
    gone = {name for one in by_id.values() for name in one.supersedes}
    found = (one for one in by_id.values() if one.id not in gone)
    plain = (replace(one, revision=0, supersedes=()) for one in found)
    return sorted(plain, key=lambda one: (one.begin_unix_ns, one.id))


@given(sets(), STEPS, STEPS, st.data())
def test_in_whatever_order_it_comes_the_same_is_known_in_the_end(
    items: list[Item], pauses: list[float], others: list[float], data: st.DataObject
) -> None:
    again = data.draw(st.permutations([*items, *items[:3], *map(before, items)]))

    expected = incidents_of(evidence(*items, now_ns=(BEGIN + 5200) * SECOND_NS))
    for order, waits in ((items, pauses), (again, others)):
        found = shown(play(ready(desk_of()), order, waits))
        assert [one for one in found if one.explanation[-1] not in WITHDRAWN] == expected


@given(sets(), STEPS, st.integers(0, 14))
def test_a_restart_at_any_moment_changes_no_event(
    items: list[Item], pauses: list[float], cut: int
) -> None:
    unbroken = play(ready(desk_of()), items, pauses)

    first = ready(desk_of())
    at, told = 2000.0, []
    desk = first
    for place, item in enumerate(items):
        if place == cut:
            desk = restarted(desk)
        desk.hears([item])
        if place < len(pauses):
            at += pauses[place]
            told += tick(desk, at)
    told += [*tick(restarted(desk), 4200)]
    assert told == unbroken[: len(told)]


def restarted(desk: IncidentDesk) -> IncidentDesk:
    encoded = msgspec.msgpack.encode(desk.record)
    return desk_of(msgspec.msgpack.decode(encoded, type=IncidentsRecord))


@given(sets(), STEPS)
def test_revisions_rise_one_by_one_and_each_says_something_new(
    items: list[Item], pauses: list[float]
) -> None:
    told: dict[str, Any] = {}
    for incident in play(ready(desk_of()), items, pauses):
        before = told.get(incident.id)
        assert incident.revision == (1 if before is None else before.revision + 1)
        assert before is None or replace(before, revision=incident.revision) != incident
        assert verdicts_in(incident.explanation) == [incident.verdict]
        told[incident.id] = incident
