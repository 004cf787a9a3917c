"""A simulated node tells what the real engine tells of the same job, seen from the same node."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from flapd.model.event import Event, Outage
from flapd.model.fault import Fault
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS
from simulators.cluster.fleet import Fleet
from simulators.cluster.spec import ORIGIN_UNIX_NS, Flap, FleetSpec, PlacedJob
from simulators.job import happenings
from simulators.job.job import simulate
from simulators.job.record import Run
from simulators.job.spec import JobSpec, Software
from tests.system.replayed import UNIX_OF_ORIGIN_NS, Seen, Told, replay

AT = 420.0
GUILTY, OTHER = 1, 0
WATCHED_FROM = 300.0
AFTERWARDS_SECONDS = 150.0
_NEAR_SECONDS = 0.35


class Case(NamedTuple):
    name: str
    down_seconds: float | None
    """Of a port of node 1; None: a rank there hangs."""
    log: bool
    software: Software = Software()


CASES = [
    Case("a flap that ends the job", 100.0, log=True),
    pytest.param(Case("a flap that is waited out", 12.0, log=True), marks=pytest.mark.long),
    pytest.param(Case("the same without a log", 100.0, log=False), marks=pytest.mark.long),
    pytest.param(Case("a flap nobody feels", 0.06, log=True), marks=pytest.mark.long),
    pytest.param(
        Case("a rank that hangs", None, log=True, software=Software(torch="2.4.0", nccl="2.20.5")),
        marks=pytest.mark.long,
    ),
    pytest.param(
        Case("kept back errors", 100.0, log=True, software=Software("2.2.0", "2.18.6")),
        marks=pytest.mark.long,
    ),
]


def job_of(case: Case) -> JobSpec:
    own: tuple[happenings.Happening, ...] = ()
    if case.down_seconds is None:
        own = (happenings.CodeHang(AT, rank=8 * GUILTY + 2),)
    return JobSpec(
        seed=5,
        nodes=4,
        restarts=0,
        duration_seconds=AT + 200.0,
        software=case.software,
        happenings=own,
    )


def simulated(case: Case, node: int) -> dict[str, Event]:
    """The last of everything that the simulated node tells."""
    flaps = () if case.down_seconds is None else (flap_of(case.down_seconds),)
    fleet = Fleet(
        FleetSpec(
            nodes=4,
            watched_from_seconds=WATCHED_FROM,
            jobs=(PlacedJob(job_of(case), log="own" if case.log else "none"),),
            happenings=flaps,
        )
    )
    return {one.event.event.id: one.event.event for one in fleet.events_of(node)}


def flap_of(down_seconds: float) -> Flap:
    return Flap(at_seconds=AT, down_seconds=down_seconds, node=GUILTY, port=3)


def real(case: Case, node: int) -> tuple[Told, Run]:
    spec = job_of(case)
    if case.down_seconds is not None:
        outage = happenings.Outage(AT, case.down_seconds, node=GUILTY, port=3)
        spec = replace(spec, happenings=(outage,))
    run = simulate(spec)
    end = run.truth.end + (AFTERWARDS_SECONDS if run.attempts[-1].end is not None else 0.0)
    return replay(run, Seen(node, WATCHED_FROM, end, case.log, True, 1)), run


def seconds(unix_ns: int | None, origin_ns: int) -> float:
    assert unix_ns is not None
    return (unix_ns - origin_ns) / SECOND_NS


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
@pytest.mark.parametrize("node", [GUILTY, OTHER], ids=["its node", "another node"])
def test_a_simulated_node_tells_what_a_real_one_would(case: Case, node: int) -> None:
    told, _ = real(case, node)
    found = simulated(case, node)

    assert outages(list(found.values()), ORIGIN_UNIX_NS) == outages(
        list(told.outages), UNIX_OF_ORIGIN_NS
    )
    same_stalls(list(found.values()), told)
    same_faults(list(found.values()), told)


def outages(events: list[Event], origin_ns: int) -> list[tuple[object, ...]]:
    """And both say of each that it began and ended when it did."""
    found = [one for one in events if isinstance(one, Outage)]
    for one in found:
        assert one.up is not None
        assert seconds(one.down.earliest_unix_ns, origin_ns) <= AT
        assert seconds(one.down.latest_unix_ns, origin_ns) >= AT
        assert one.down.latest_ns - one.down.earliest_ns <= 0.6 * SECOND_NS
    return [(one.port, one.kind, one.status, one.cause, one.seen, one.layer) for one in found]


def same_stalls(events: list[Event], told: Told) -> None:
    mine = [one for one in events if isinstance(one, Stall)]
    assert len(mine) == len(told.stalls)
    for simulated_stall, stall in zip(mine, told.stalls, strict=True):
        assert simulated_stall.stall_class in (stall.stall_class, "unknown")
        assert set(simulated_stall.ports) == set(stall.ports)
        for ours, theirs in (
            (simulated_stall.begin_unix_ns, stall.begin_unix_ns),
            (simulated_stall.end_unix_ns, stall.end_unix_ns),
        ):
            apart = seconds(ours, ORIGIN_UNIX_NS) - seconds(theirs, UNIX_OF_ORIGIN_NS)
            assert abs(apart) <= _NEAR_SECONDS


def same_faults(events: list[Event], told: Told) -> None:
    """Those that are primary on the node: the same kinds by the same ranks at the same times."""
    mine = [one for one in events if isinstance(one, Fault)]
    theirs = [one for one in told.faults if one.primary and one.job is not None]
    assert sorted(map(known, mine), key=str) == sorted(map(known, theirs), key=str)
    for one in mine:
        other = next(each for each in theirs if known(each) == known(one))
        apart = seconds(one.time_ns, ORIGIN_UNIX_NS) - seconds(other.time_ns, UNIX_OF_ORIGIN_NS)
        assert abs(apart) * SECOND_NS <= one.clock_error_ns + other.clock_error_ns


def known(fault: Fault) -> tuple[object, ...]:
    return fault.kind, fault.rank, fault.hca, fault.process_group, fault.op, fault.seq


def test_it_tells_of_its_job_what_its_processes_show() -> None:
    found = simulated(Case("any", 12.0, log=True), OTHER)

    (job,) = [one for one in found.values() if isinstance(one, Job)]
    assert (job.world_size.value if job.world_size else None, job.gpus) == (32, 8)
    assert job.local_ranks == tuple(range(8))
    assert job.stalls_seen_since_unix_ns is not None
    assert {name: given.value for name, given in job.policy.items()} == {
        "ib_timeout": 20,
        "retry_cnt": 7,
        "watchdog_seconds": 600.0,
        "heartbeat_seconds": 480.0,
        "error_handling": 1,
        "coordinated": True,
        "failover": False,
    }
