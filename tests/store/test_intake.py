"""Intake: what is kept follows from the set of what was taken, not from its order or number."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.model.event import Event
from flapd.store.flap_query import FlapQuery, find_flaps
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.intake import Intake
from flapd.store.job_queries import (
    FaultQuery,
    IncidentQuery,
    JobQuery,
    StallQuery,
    find_incidents,
)
from tests.store.jobs import cause, fault, incident, job, stall
from tests.store.outages import outage, outages

_PARTS = (
    "SELECT id, revision, node, body, flaps.port, cause FROM flaps JOIN facets USING (facet)",
    "SELECT id, revision, node, body FROM jobs",
    "SELECT id, revision, node, body, job, rank FROM faults",
    "SELECT id, revision, node, body FROM stalls",
    "SELECT id, revision, body FROM incidents",
    "SELECT flap, incident, link_port, link_node FROM flap_incidents",
    "SELECT link_job, incident, incident_facet FROM incident_jobs",
    "SELECT link_job, incident, flap, flap_down_unix_ns FROM flap_jobs",
    "SELECT node, incident FROM incident_nodes",
    "SELECT id, revision, body FROM journal",
)


class Store:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "hub.sqlite"
        self.history = History(self.path)
        self.intake = Intake()

    def take(self, *events: Event, **checkpoint: bytes) -> None:
        self.history.write(partial(self.intake.take, events=events, checkpoint=checkpoint))

    def content(self) -> list[list[tuple[Any, ...]]]:
        """All that is kept, without the numbers that say when it came."""
        with closing(sqlite3.connect(self.path)) as connection:
            return [sorted(connection.execute(part), key=repr) for part in _PARTS]


@contextmanager
def a_store() -> Iterator[Store]:
    with TemporaryDirectory() as directory:
        store = Store(Path(directory))
        with closing(store.history):
            yield store


@contextmanager
def a_reader(store: Store) -> Iterator[HistoryReader]:
    with closing(HistoryReader(store.path)) as reader:
        yield reader


@st.composite
def told(draw: st.DrawFn) -> Event:
    """Of few ids and nodes, so that many say something of the same."""
    node = draw(st.sampled_from(["node1", "node2"]))
    revision, name = draw(st.integers(1, 3)), draw(st.sampled_from("ab"))
    kind = draw(st.sampled_from(["flap", "fault", "stall", "job"]))
    if kind == "flap":
        return replace(draw(outages(f"{node}-{name}", revision)), node=node)
    if kind == "fault":  # several nodes may tell of one, each in its own way
        rank = draw(st.integers(0, 2))
        return fault(f"fault-{name}", revision, node=node, rank=rank)
    if kind == "stall":
        return stall(f"{node}-stall-{name}", revision, node=node, end=revision + 20.0)
    return job(f"{node}-job-{name}", revision, node=node)


def batches_of(events: Sequence[Event], cuts: Sequence[int]) -> Iterator[Sequence[Event]]:
    begin = 0
    for size in cuts:
        yield events[begin : begin + size]
        begin += size
    yield events[begin:]


@settings(max_examples=25, deadline=None)
@given(st.lists(told(), max_size=12), st.data())
def test_any_order_any_batches_and_any_doubles_give_the_same_store(
    events: list[Event], data: st.DataObject
) -> None:
    # One node never says two things of its own under one number.
    events = list({(event.id, event.revision, event.node): event for event in events}.values())
    others = data.draw(
        st.permutations(events + data.draw(st.lists(st.sampled_from(events or [job()]))))
    )
    others = [event for event in others if event in events]
    cuts = data.draw(st.lists(st.integers(0, 5), max_size=5))

    with a_store() as one, a_store() as another:
        one.take(*events)
        for batch in batches_of(others, cuts):
            another.take(*batch)

        assert one.content() == another.content()


def test_of_each_the_highest_revision_is_shown_and_the_journal_has_all(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with closing(store.history), a_reader(store) as reader:
        store.take(outage("a", 2, up=14), outage("a", 1, up=None))
        store.take(outage("a", 1, up=None), outage("b", 1))

        assert reader.flaps(FlapQuery()).items == [outage("b", 1), outage("a", 2, up=14)]
        assert [event.revision for _seq, event in reader.events_after(0, 10)] == [2, 1, 1]


def test_what_was_kept_one_by_one_is_kept_the_same(tmp_path: Path) -> None:
    """As an agent keeps it."""
    told = incident(nodes=("node17", "node18"))
    events: list[Event] = [outage(), job(), fault(), stall(), told]
    (tmp_path / "agent").mkdir()
    agent, hub = Store(tmp_path / "agent"), Store(tmp_path)
    with closing(agent.history), closing(hub.history):
        agent.history.commit(events, {"part": b"1"})
        hub.take(*events, part=b"1")

        assert agent.content() == hub.content()
        assert agent.history.checkpoint() == hub.history.checkpoint()


def test_an_incident_finds_its_flap_whichever_came_first(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with closing(store.history), a_reader(store) as reader:
        store.take(incident("i1"))
        store.take(outage("a"), incident("i2", causes=(cause("b"),), flap_gpu_seconds={}))
        store.take(outage("b"))

        assert reader.flaps(FlapQuery(job="4711")).items == [outage("b"), outage("a")]


def test_lists_are_asked_for_by_node(tmp_path: Path) -> None:
    store = Store(tmp_path)
    here: dict[str, Any] = {"node": "node1"}
    there: dict[str, Any] = {"node": "node2"}
    with closing(store.history), a_reader(store) as reader:
        store.take(outage("a", **here), outage("b", **there), job("j1", **here), job("j2", **there))
        store.take(
            fault("f1", **here), fault("f2", **there), stall("s1", **here), stall("s2", **there)
        )
        store.take(incident("i1", nodes=("node1", "node2")), incident("i2", **here))

        def ids(page: Any) -> list[str]:
            return sorted(item.id for item in page.items)

        assert ids(reader.flaps(FlapQuery(node="node1"))) == ["a"]
        assert ids(reader.flaps(FlapQuery(node="node2", port="mlx5_0/1"))) == ["b"]
        assert ids(reader.flaps(FlapQuery(node="node3"))) == []
        assert ids(reader.jobs(JobQuery(node="node2", job="4711"))) == ["j2"]
        assert ids(reader.faults(FaultQuery(node="node1"))) == ["f1"]
        assert ids(reader.stalls(StallQuery(node="node1", job="4711"))) == ["s1"]
        assert ids(reader.incidents(IncidentQuery(node="node1"))) == ["i1", "i2"]
        assert ids(reader.incidents(IncidentQuery(node="node2", job="4711"))) == ["i1"]
        assert reader.flaps_per_port(0, "node1") == {"0x1/1": 1}


def test_a_transaction_that_failed_leaves_nothing_behind_and_is_tried_again(tmp_path: Path) -> None:
    store = Store(tmp_path)

    def fail(connection: sqlite3.Connection) -> None:
        store.intake.take(connection, [outage("a"), stall()], {})
        raise InterruptedError

    with closing(store.history), a_reader(store) as reader:
        with pytest.raises(InterruptedError):
            store.history.write(fail)
        store.intake.forget()
        assert reader.flaps(FlapQuery()).items == []

        store.take(outage("a"), stall())

        assert reader.flaps(FlapQuery(cause="link")).items == [outage("a")]
        assert reader.stalls(StallQuery(stall_class="local_link")).items == [stall()]


def test_an_incident_that_hit_several_jobs_is_found_by_each(tmp_path: Path) -> None:
    store = Store(tmp_path)
    both = incident("both", job=None, jobs=("4711", "4712"), nodes=("node1",))
    with closing(store.history), a_reader(store) as reader:
        store.take(incident("one"), replace(both, revision=0), incident("other", job="4713"))
        store.take(replace(both, revision=1))

        def found(**asked: Any) -> list[str]:
            return sorted(one.id for one in reader.incidents(IncidentQuery(**asked)).items)

        assert found(job="4711") == ["both", "one"]
        assert found(job="4711", node="node1") == ["both"]
        assert found(job="4712") == ["both"]
        assert found(job="4713") == ["other"]
        assert found(job="4714") == []


def test_the_flaps_of_an_incident_of_several_jobs_are_found_by_each(tmp_path: Path) -> None:
    store = Store(tmp_path)
    causes = (cause("a"), cause("b", port="mlx5_1/1"))
    shared: dict[str, Any] = {"job": None, "nodes": ("node17",), "flap_gpu_seconds": {}}
    both = incident("both", jobs=("4711", "4712"), causes=causes, **shared)
    one = incident("one", causes=(cause("c"),), flap_gpu_seconds={})
    with closing(store.history), a_reader(store) as reader:

        def flaps(job: str) -> list[str]:
            return [one.id for one in reader.flaps(FlapQuery(job=job)).items]

        def incidents(**asked: Any) -> list[str]:
            return [one.id for one in reader.incidents(IncidentQuery(**asked)).items]

        store.take(outage("a"), both)
        store.take(outage("b", down=20, up=22), outage("c"), one)

        assert (flaps("4711"), flaps("4712"), flaps("4713")) == (["b", "c", "a"], ["b", "a"], [])
        assert incidents(job="4712", port="mlx5_1/1") == ["both"]
        assert incidents(job="4711", port="mlx5_1/1") == ["both"]
        assert incidents(job="4712", port="mlx5_1/1", node="node18") == []

        later = incident("both", 1, jobs=("4712", "4713"), causes=causes[:1], **shared)
        store.take(later, outage("a", 2, down=30, up=32))

        assert (flaps("4711"), flaps("4712"), flaps("4713")) == (["c"], ["a"], ["a"])


@pytest.mark.parametrize("asked", [{}, {"port": "mlx5_0/1"}, {"node": "node1"}])
@pytest.mark.parametrize("kind", ["flaps", "incidents"])
def test_what_hit_a_job_is_found_without_looking_at_what_hit_others(
    kind: str, asked: dict[str, Any], tmp_path: Path
) -> None:
    store = Store(tmp_path)
    plans: list[str] = []
    with closing(store.history), closing(sqlite3.connect(store.path)) as connection:
        store.take(outage("a"), incident(causes=(cause("a"),)))
        connection.set_trace_callback(plans.append)
        if kind == "flaps":
            find_flaps(connection, FlapQuery(job="4711", **asked))
        else:
            find_incidents(connection, IncidentQuery(job="4711", **asked))
        connection.set_trace_callback(None)
        asked_for = [text for text in plans if "ORDER BY" in text and "_down_unix_ns DESC" in text]
        asked_for += [text for text in plans if "incident_begin_unix_ns DESC" in text]

        steps = [
            row[3] for text in asked_for for row in connection.execute(f"EXPLAIN QUERY PLAN {text}")
        ]

    assert any(f"{kind}_of_job (link_job=?" in step for step in steps)
    assert not [step for step in steps if step.startswith("SCAN") or "TEMP B-TREE" in step]
