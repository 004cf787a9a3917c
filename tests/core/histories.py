"""Histories: what must hold of the engine, whatever it is told."""

from collections.abc import Sequence

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration
from flapd.model.event import Event, Outage, PortChange
from flapd.model.observation import Observation

MS = 1_000_000
SETTINGS = FlapSettings(
    merge_within=Duration(200 * MS), drop_after=Duration(500 * MS), boot_grace=Duration(300 * MS)
)


def run(engine: Engine, observations: Sequence[Observation]) -> list[Event]:
    return [event for observation in observations for event in engine.step(observation)]


def assert_a_restart_changes_no_event(observations: Sequence[Observation], cut: int) -> None:
    """`cut` observations are taken before it."""
    unbroken = run(Engine("node7", SETTINGS), observations)

    first = Engine("node7", SETTINGS)
    events = run(first, observations[:cut])
    events += run(Engine.of_recording("node7", first.checkpoint()), observations[cut:])

    assert events == unbroken


def assert_revisions_rise_and_end_with_the_end(observations: Sequence[Observation]) -> None:
    """One by one; every outage is in order."""
    revisions: dict[str, list[Event]] = {}
    for event in run(Engine("node7", SETTINGS), observations):
        revisions.setdefault(event.id, []).append(event)

    for events in revisions.values():
        first = events[0].revision if isinstance(events[0], PortChange) else 1
        assert [event.revision - first for event in events] == list(range(len(events)))
        outages = [event for event in events if isinstance(event, Outage)]
        for outage in outages:
            assert_ordered(outage)
        assert all(outage is events[-1] for outage in outages if outage.status == "lost")


def assert_ordered(outage: Outage) -> None:
    assert outage.down.earliest_ns <= outage.down.latest_ns
    assert (outage.up is None) == (outage.status != "closed")
    assert outage.count >= 1
    if outage.up is not None:
        assert outage.down.earliest_ns <= outage.up.earliest_ns <= outage.up.latest_ns
        assert outage.down_ns_min is not None
        assert outage.down_ns_max is not None
        assert 0 <= outage.down_ns_min <= outage.down_ns_max
