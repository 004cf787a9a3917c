"""Questions for what is told of jobs: the same answer as looking at each, in pages of any size."""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.model.errors import FlapdError
from flapd.model.event import Event
from flapd.model.fault import Fault
from flapd.model.given import exactly
from flapd.model.incident import Incident
from flapd.model.loss import Range
from flapd.model.times import SECOND_NS
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import (
    FaultQuery,
    IncidentQuery,
    JobQuery,
    Page,
    StallQuery,
    matches_job_query,
)
from tests.store.jobs import cause, fault, incident, job, stall
from tests.store.outages import outage, unix


@contextmanager
def holding(events: Sequence[Event]) -> Iterator[HistoryReader]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "history.db"
        with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
            history.commit(events, {})
            yield reader


def all_pages(ask: Callable[[Any], Page[Any]], query: Any) -> list[Any]:
    items: list[Any] = []
    while True:
        page = ask(query)
        assert len(page.items) <= query.limit
        items += page.items
        if page.next is None:
            return items
        query = replace(query, cursor=page.next)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


SECONDS = st.integers(0, 1000)
MOMENTS = st.integers(-10, 1500).map(unix)
JOBS = st.sampled_from(["4711", "4712"])


@st.composite
def faults(draw: st.DrawFn, fault_id: str) -> Fault:
    return fault(
        fault_id,
        at=draw(maybe(SECONDS)),
        clock_error_ns=draw(st.sampled_from([0, 1, SECOND_NS, 100 * SECOND_NS])),
        kind=draw(st.sampled_from(["watchdog_timeout", "transport_error", "port_event"])),
        job=draw(maybe(JOBS)),
        rank=draw(maybe(st.integers(0, 2))),
        host=draw(maybe(st.sampled_from(["node17", "node18"]))),
        merged_into=draw(st.sampled_from([None, None, None, "fault-other"])),
    )


FAULT_QUERIES = st.builds(
    FaultQuery,
    since_unix_ns=maybe(MOMENTS),
    until_unix_ns=maybe(MOMENTS),
    kind=maybe(st.sampled_from(["watchdog_timeout", "port_event"])),
    job=maybe(JOBS),
    rank=maybe(st.integers(0, 3)),
    host=maybe(st.just("node17")),
    limit=st.integers(1, 7),
)


def is_wanted(told: Fault, query: FaultQuery) -> bool:
    """The filters, said a second time and as plainly as can be."""
    error, at = told.clock_error_ns, told.time_ns
    since, until = query.since_unix_ns, query.until_unix_ns
    return (
        told.merged_into is None
        and (at is None or since is None or at + error >= since)
        and (at is None or until is None or at - error <= until)
        and all(
            getattr(query, name) in (None, getattr(told, name))
            for name in ("kind", "job", "rank", "host")
        )
    )


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 25).flatmap(lambda size: st.tuples(*(faults(f"f{i}") for i in range(size)))),
    st.lists(FAULT_QUERIES, min_size=1, max_size=5),
)
def test_pages_of_faults_give_what_the_filters_say_newest_first(
    told: tuple[Fault, ...], queries: list[FaultQuery]
) -> None:
    with holding(told) as reader:
        for query in queries:
            wanted = [one for one in told if is_wanted(one, query)]
            wanted.sort(key=lambda one: (one.time_ns or 0, one.id), reverse=True)
            assert all_pages(reader.faults, query) == wanted
            assert [one for one in told if matches_job_query(query, one)] == [
                one for one in told if is_wanted(one, query)
            ]


@st.composite
def incidents(draw: st.DrawFn, incident_id: str) -> Incident:
    begin = draw(SECONDS)
    flaps = draw(st.lists(st.integers(0, 5), max_size=3, unique=True))
    return incident(
        incident_id,
        begin=begin,
        end=draw(maybe(st.integers(begin, begin + 500))),
        job=draw(maybe(JOBS)),
        verdict=draw(st.sampled_from(["caused", "elsewhere", "unknown"])),
        regime=draw(maybe(st.sampled_from(["absorbed", "watchdog"]))),
        causes=tuple(cause(f"flap{n}", port=f"mlx5_{n % 3}/1") for n in flaps),
        flap_gpu_seconds={},
    )


INCIDENT_QUERIES = st.builds(
    IncidentQuery,
    since_unix_ns=maybe(MOMENTS),
    until_unix_ns=maybe(MOMENTS),
    job=maybe(JOBS),
    verdict=maybe(st.sampled_from(["caused", "unknown"])),
    regime=maybe(st.sampled_from(["absorbed", "watchdog"])),
    status=maybe(st.sampled_from(["open", "closed"])),
    port=maybe(st.sampled_from(["mlx5_0/1", "mlx5_2/1", "absent"])),
    cause=maybe(st.sampled_from(["link", "subnet"])),
    min_down_ns=maybe(st.sampled_from([0, 3 * SECOND_NS])),
    limit=st.integers(1, 7),
)
FLAPS = [
    outage(f"flap{n}", down=n, up=n + n, cause=("link", "subnet")[n % 2], port=f"mlx5_{n % 3}/1")
    for n in range(6)
]


def incident_is_wanted(told: Incident, query: IncidentQuery) -> bool:
    end = 2**63 if told.open else told.end_unix_ns
    flaps = [flap for flap in FLAPS if flap.id in {one.flap for one in told.causes}]
    long_enough = [flap for flap in flaps if (flap.down_ns_max or 0) >= (query.min_down_ns or 0)]
    return (
        (query.since_unix_ns is None or (end or 0) >= query.since_unix_ns)
        and (query.until_unix_ns is None or told.begin_unix_ns <= query.until_unix_ns)
        and query.job in (None, told.job)
        and query.verdict in (None, told.verdict)
        and query.regime in (None, told.regime)
        and query.status in (None, "open" if told.open else "closed")
        and (query.port is None or query.port in {flap.port for flap in flaps})
        and (query.cause is None or query.cause in {flap.cause for flap in flaps})
        and (query.min_down_ns is None or bool(long_enough))
    )


@settings(deadline=None, max_examples=60)
@given(
    st.integers(0, 20).flatmap(lambda size: st.tuples(*(incidents(f"i{n}") for n in range(size)))),
    st.lists(INCIDENT_QUERIES, min_size=1, max_size=5),
    st.booleans(),
)
def test_pages_of_incidents_give_what_the_filters_say_newest_first(
    told: tuple[Incident, ...], queries: list[IncidentQuery], flaps_come_first: bool
) -> None:
    with holding([*FLAPS, *told] if flaps_come_first else [*told, *FLAPS]) as reader:
        for query in queries:
            wanted = [one for one in told if incident_is_wanted(one, query)]
            wanted.sort(key=lambda one: (one.begin_unix_ns, one.id), reverse=True)
            assert all_pages(reader.incidents, query) == wanted


@settings(deadline=None, max_examples=40)
@given(
    st.integers(0, 20).flatmap(lambda size: st.tuples(*(incidents(f"i{n}") for n in range(size)))),
    st.booleans(),
    JOBS,
    maybe(st.sampled_from(["link", "subnet"])),
    st.integers(1, 3),
)
def test_the_flaps_of_a_job_are_those_that_its_incidents_name(
    told: tuple[Incident, ...], flaps_come_first: bool, job_id: str, why: Any, limit: int
) -> None:
    with holding([*FLAPS, *told] if flaps_come_first else [*told, *FLAPS]) as reader:
        named = {one.flap for each in told if each.job == job_id for one in each.causes}
        wanted = [f for f in reversed(FLAPS) if f.id in named and why in (None, f.cause)]
        query = FlapQuery(job=job_id, cause=why, limit=limit)
        assert all_pages(reader.flaps, query) == wanted  # type: ignore[arg-type]


def test_jobs_and_stalls_are_found_by_what_overlaps_a_span() -> None:
    events: list[Event] = [
        job("job-1", since=0, until=50),
        job("job-2", since=60, job="4712"),
        stall("stall-1", begin=10, end=14),
        stall("stall-2", begin=70, end=None, job="4712", stall_class="remote"),
    ]

    with holding(events) as reader:
        early, late = JobQuery(until_unix_ns=unix(20)), JobQuery(since_unix_ns=unix(10**6))
        assert [one.id for one in reader.jobs(early).items] == ["job-1"]
        assert [one.id for one in reader.jobs(late).items] == ["job-2"]
        assert [one.id for one in reader.jobs(JobQuery(job="4711")).items] == ["job-1"]
        remote = StallQuery(stall_class="remote")
        assert [one.id for one in reader.stalls(remote).items] == ["stall-2"]
        of_job = StallQuery(job="4711", until_unix_ns=unix(9))
        assert reader.stalls(of_job).items == []


def test_a_job_that_ends_is_found_in_its_end_only() -> None:
    with holding([job("job-1", 0), job("job-1", 1, until=50)]) as reader:
        assert reader.jobs(JobQuery(since_unix_ns=unix(51))).items == []
        assert reader.jobs(JobQuery()).items == [job("job-1", 1, until=50)]


def test_what_has_no_end_is_read_as_it_was_told() -> None:
    """A timeout that is switched off is infinite, and JSON has no such number."""
    endless = Range(4.0, math.inf, math.inf)
    told = incident(lost_seconds=endless, gpu_seconds=endless, flap_gpu_seconds={"a": endless})
    policy = {"watchdog_seconds": exactly(math.inf, "environment")}

    with holding([told, job(policy=policy)]) as reader:
        assert reader.incident("incident-1") == told
        assert reader.jobs(JobQuery()).items == [job(policy=policy)]
        assert [event for _seq, event in reader.events_after(0, 9)] == [told, job(policy=policy)]
        assert reader.losses(["a"])["a"].gpu_seconds == endless


def test_numbers_that_the_database_cannot_hold_are_no_error() -> None:
    with holding([fault(rank=2**63 + 5, clock_error_ns=2**63 - 1)]) as reader:
        (told,) = reader.faults(FaultQuery(rank=2**64)).items
        assert told.rank == 2**63 + 5


def test_what_a_flap_cost_is_summed_over_its_incidents() -> None:
    events: list[Event] = [
        outage("a"),
        incident("i1", flap_gpu_seconds={"a": Range(1, 2, 3)}),
        incident("i2", begin=11, job="4712", flap_gpu_seconds={"a": Range(10, 20, 30)}),
        incident("i3", begin=12, causes=(cause("b"),), flap_gpu_seconds={}),
    ]

    with holding(events) as reader:
        losses = reader.flaps(FlapQuery()).losses
        assert losses["a"].incidents == ("i1", "i2")
        assert losses["a"].gpu_seconds == Range(11, 22, 33)
        assert reader.losses(["b"])["b"].gpu_seconds is None
        assert reader.losses(["c"]) == {}


def test_an_incident_that_became_another_one_is_that_other_one() -> None:
    events: list[Event] = [
        outage("a"),
        incident("i1"),
        incident("i2", begin=11),
        incident("i3", begin=9, supersedes=("i1", "i2")),
    ]

    with holding(events) as reader:
        assert [one.id for one in reader.incidents(IncidentQuery()).items] == ["i3"]
        assert [one.id for one in reader.incidents(IncidentQuery(port="mlx5_0/1")).items] == ["i3"]
        assert reader.incident("i1") == events[-1]
        assert reader.flaps(FlapQuery()).losses["a"].incidents == ("i3",)


def test_incidents_that_were_one_for_a_while_are_both_told_again() -> None:
    events: list[Event] = [incident("i1"), incident("i2", 0, supersedes=("i1",)), incident("i2", 1)]

    with holding(events) as reader:
        assert {one.id for one in reader.incidents(IncidentQuery()).items} == {"i1", "i2"}


def test_of_two_incidents_that_each_took_the_others_place_the_later_is_told() -> None:
    events: list[Event] = [
        incident("i1", 0, supersedes=("i2",)),
        incident("i2", 0, supersedes=("i1",)),
    ]

    with holding(events) as reader:
        assert [one.id for one in reader.incidents(IncidentQuery()).items] == ["i2"]
        assert reader.incident("i1") == events[1]


@pytest.mark.parametrize("cursor", ["x", "WzEsMl0"])
def test_a_malformed_cursor_is_refused_by_name(cursor: str) -> None:
    with holding([]) as reader, pytest.raises(FlapdError, match=r"^cursor "):
        reader.incidents(IncidentQuery(cursor=cursor))
