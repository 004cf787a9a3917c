"""What a fleet tells in the end follows from the set of what its nodes told."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.fleet import FleetView, Link, Peer, Topology
from flapd.model.event import Event
from flapd.model.incident import Incident
from flapd.model.stall import STALL_CLASSES, Stall
from tests.core.fleet.fleets import (
    LATER,
    final,
    job,
    key,
    outage,
    stall,
    timeout,
    told,
    transport_error,
    view,
    watched,
)
from tests.core.incident.parts import ns

EXAMPLES = 25
NODES = st.integers(0, 4)
SECONDS = st.integers(0, 60).map(lambda at: 100.0 + at / 2)
NAMES = st.sampled_from(["4711", "4712"])
TOPOLOGY = Topology(
    Link(Peer("leaf", str(number)), guid=key(number, 0)[:-2]) for number in range(5)
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    kind = draw(st.sampled_from(["job", "outage", "outage", "stall", "timeout", "error"]))
    number, at = draw(NODES), draw(SECONDS)
    if kind == "job":
        return job(number, draw(NAMES))
    if kind == "outage":
        length = draw(st.sampled_from([0.5, 12.0, 60.0, 400.0, None]))
        return outage(number, at, length, port=draw(st.sampled_from([0, 0, 8])))
    known: dict[str, Any] = {"job": draw(NAMES)}
    if kind == "stall":
        known["stall_class"] = draw(st.sampled_from(STALL_CLASSES))
        known["id"] = f"stall-{number}-{at:g}-{known['job']}"
        return stall(number, at, draw(st.sampled_from([3.0, 17.0, 400.0, None])), **known)
    known["process_group"] = draw(st.sampled_from([None, "0"]))
    known["id"] = f"fault-{kind}-{number}-{at:g}-{known['job']}"
    if kind == "timeout":
        return timeout(number, at + 600.0, **known)
    return transport_error(number, at, **known)


def fleet_of() -> FleetView:
    fleet = view(TOPOLOGY)
    watched(fleet, range(5), ahead={1: 3.0, 2: -1.5})
    return fleet


def in_the_end(heard: list[Event], looks: set[int] = frozenset()) -> list[Incident]:  # type: ignore[assignment]
    """As told last, but for how often; `looks` are the events after which somebody looked."""
    fleet = fleet_of()
    incidents = []
    for place, one in enumerate(told(*heard)):
        fleet.hear(one)
        if place in looks:
            incidents += fleet.look(ns(800.0 + place))
    incidents += fleet.look(ns(3 * LATER))
    return [replace(one, revision=0, supersedes=()) for one in final(incidents)]


def one_each(heard: list[Event]) -> list[Event]:
    """Of each id one, as agents tell them."""
    return list({one.id: one for one in heard}.values())


SETS = st.lists(events(), max_size=14).map(one_each)


@given(SETS, st.data())
@settings(max_examples=EXAMPLES)
def test_the_order_of_what_nodes_told_changes_nothing(
    heard: list[Event], data: st.DataObject
) -> None:
    mixed = data.draw(st.permutations(heard))

    assert in_the_end(mixed) == in_the_end(heard)


@given(SETS, st.data())
@settings(max_examples=EXAMPLES)
def test_what_was_looked_at_meanwhile_and_came_twice_changes_nothing(
    heard: list[Event], data: st.DataObject
) -> None:
    mixed = [*data.draw(st.permutations(heard)), *heard]
    looks = data.draw(st.sets(st.integers(0, 2 * len(heard))))
    known = [one for one in in_the_end(mixed, looks) if not is_withdrawn(one)]

    assert known == in_the_end(heard)


def is_withdrawn(incident: Incident) -> bool:
    return "turned out to be" in incident.explanation[-1]


@given(SETS)
@settings(max_examples=EXAMPLES)
def test_each_symptom_is_told_once_and_each_outage_is_charged_once(heard: list[Event]) -> None:
    found = in_the_end(heard)
    symptoms = [name for one in found for name in one.symptoms]

    assert len(symptoms) == len(set(symptoms))
    assert len({one.id for one in found}) == len(found)


@given(SETS)
@settings(max_examples=EXAMPLES)
def test_an_older_revision_that_comes_later_changes_nothing(heard: list[Event]) -> None:
    revised = [replace(one, revision=2) for one in heard]
    older = [
        replace(one, revision=1, **({"end_ns": None} if isinstance(one, Stall) else {}))
        for one in heard
    ]

    assert in_the_end([*revised, *older]) == in_the_end(revised)
