"""A heartbeat tells of each port whether it was seen, so that nobody takes the unseen for clean."""

from flapd.core.fabric.view import Snapshot
from flapd.core.job.view import JobsView, JobTotals
from flapd.fleet.beat import Vitals, heartbeat
from flapd.fleet.settings import FleetSettings
from flapd.model.fleet import ClockState, Heartbeat, PortState
from tests.serve.parts import port, view
from tests.store.jobs import job


def told(snapshot: Snapshot) -> Heartbeat:
    clock = ClockState(True, None, 0.001, 0.02)
    vitals = Vitals(snapshot, ("mlx5_1/1 was not read yet",), clock, 10, 20)
    return heartbeat(FleetSettings(), "node17", vitals, 9, 7)


def test_it_tells_of_each_port_that_is_there_whether_it_is_seen() -> None:
    ports = (
        view(),
        view(port(key="b", device="mlx5_1"), up=None, readable=False, witness_status="unreadable"),
        view(port(key="c", device="mlx5_2"), present=False),
    )
    guid = "0002:c903:0000:0001"

    assert told(Snapshot(ports=ports)).ports == (
        PortState(
            f"{guid}/1",
            "mlx5_0/1",
            guid,
            True,
            True,
            True,
            "live",
            False,
            False,
            False,
            "InfiniBand",
        ),
        PortState(
            "b",
            "mlx5_1/1",
            guid,
            None,
            True,
            False,
            "unreadable",
            False,
            False,
            False,
            "InfiniBand",
        ),
    )


def test_it_counts_all_faults_and_names_the_jobs_that_run() -> None:
    totals = JobTotals()
    totals.faults["port_event"] = 1024
    jobs = JobsView(running=(job(),), blind_to=("other users' processes",), totals=totals)

    found = told(Snapshot(jobs=jobs))

    assert found.faults["port_event"] == 1024
    assert found.faults["counter"] == 0
    assert (found.jobs, found.blind_to) == (("4711",), ("other users' processes",))


def test_it_says_how_its_clock_is_and_what_it_has_not_told_yet() -> None:
    found = told(Snapshot(boot="boot-1"))

    assert found.clock == ClockState(True, None, 0.001, 0.02)
    assert (found.boot, found.sent_unix_ns, found.sent_monotonic_ns) == ("boot-1", 10, 20)
    assert (found.last_seq, found.acknowledged_seq) == (9, 7)
    assert found.not_ready == ("mlx5_1/1 was not read yet",)
