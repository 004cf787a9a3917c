"""What a lost checkpoint leaves open in the history is told to be lost, and can be found again."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.core.orphans import LOST, UNSEEN_END, GoesOn
from flapd.model.event import Event, Outage
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.observation import READ_FIRST, READ_STATE, READ_WITNESS, JobSeen, Sample, Tick
from flapd.model.stall import Stall
from flapd.opening import going_on
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from tests.core.incident.parts import stall
from tests.core.job.node import KEYS, WITNESS, Node, found, ns, prelude, unix

READ_AT = 20.0


def down_while_a_job_runs() -> Node:
    """A port is down, nobody sees what that does to the job, and so an incident is open."""
    node = Node()
    reads = READ_WITNESS | READ_STATE | READ_FIRST
    for key in KEYS:
        values = {WITNESS: 0, "state": 4, "phys_state": 5}
        node.take(Sample(key, ns(1.0), ns(1.1), reads, values))
    node.job(2.0)
    reads = READ_WITNESS | READ_STATE
    values = {WITNESS: 1, "state": 1, "phys_state": 2}
    node.take(Sample(KEYS[0], ns(5.0), ns(5.1), reads, values))
    node.take(Sample(KEYS[0], ns(READ_AT), ns(READ_AT), reads, {}), Tick(ns(READ_AT)))
    return node


def open_in(told: list[Event]) -> list[GoesOn]:
    """The last revisions of what goes on."""
    latest = {one.id: one for one in told}.values()
    return [
        one
        for one in latest
        if (isinstance(one, Outage) and one.status == "open")
        or (isinstance(one, Job) and one.until_unix_ns is None)
        or (isinstance(one, Incident) and one.open)
    ]


def after_loss(node: Node) -> Engine:
    """Nothing but what every version understands is left."""
    checkpoint = {**node.engine.checkpoint(), "version": b"0"}
    return Engine.with_totals_of("node7", FlapSettings(), checkpoint, 3 * 10**9)


@pytest.fixture
def node() -> Node:
    made = down_while_a_job_runs()
    assert {type(one) for one in open_in(made.told)} == {Outage, Job, Incident}
    return made


def test_what_the_engine_knows_is_no_orphan(node: Node) -> None:
    assert node.engine.orphans(open_in(node.told)) == []
    node.restart()
    assert node.engine.orphans(open_in(node.told)) == []


def test_each_orphan_ends_once_and_says_that_its_end_is_lost(node: Node) -> None:
    going = open_in(node.told)
    lost = {type(one): one for one in after_loss(node).orphans(going)}

    assert {one.id: one.revision for one in lost.values()} == {
        one.id: one.revision + 1 for one in going
    }
    outage, job, incident = lost[Outage], lost[Job], lost[Incident]
    assert isinstance(outage, Outage)
    assert isinstance(job, Job)
    assert isinstance(incident, Incident)
    assert outage.status == "lost"
    assert job.until_unix_ns == incident.end_unix_ns == unix(READ_AT)
    assert not incident.open
    assert incident.explanation[-1] == LOST
    assert UNSEEN_END in job.blind_to
    assert UNSEEN_END in incident.blind_to


def test_a_stall_that_is_lost_lasted_at_least_until_the_last_reading(node: Node) -> None:
    going = replace(stall(5.0, None, job="4711"), wall_offset_ns=unix(0.0))

    (lost,) = after_loss(node).orphans([going])

    assert isinstance(lost, Stall)
    assert lost.seconds == READ_AT - 5.0
    assert UNSEEN_END in lost.blind_to


def test_a_job_that_runs_still_is_told_again_above_what_was_told_of_its_loss(node: Node) -> None:
    engine = after_loss(node)
    (lost,) = [one for one in engine.orphans(open_in(node.told)) if isinstance(one, Job)]
    engine = Engine.of_recording("node7", engine.checkpoint())

    told = [event for one in prelude() for event in engine.step(one)]
    told += engine.step(JobSeen(found(), ns(30.0)))

    (again,) = [one for one in told if isinstance(one, Job)]
    assert (again.id, again.revision) == (lost.id, lost.revision + 1)
    assert again.until_unix_ns is None


def test_the_history_is_asked_for_all_that_goes_on_and_nothing_else(
    node: Node, tmp_path: Path
) -> None:
    history = History(tmp_path / "history.sqlite")
    over = [stall(1.0, 2.0, id="stall-over"), stall(3.0, None, id="stall-open")]
    history.commit([*node.told, *over], {})
    reader = HistoryReader(tmp_path / "history.sqlite")

    names = {one.id for one in going_on(reader)}

    assert names == {one.id for one in open_in(node.told)} | {"stall-open"}
    reader.close()
    history.close()
