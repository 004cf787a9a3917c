"""Metrics of what hurt jobs: from the start at 0, and of jobs only while they run."""

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from flapd.core.fabric.view import PortView, Snapshot
from flapd.core.incident.view import Claim, IncidentsView, IncidentTotals
from flapd.core.job.view import JobsView, JobTotals
from flapd.model.fault import FAULT_KINDS
from flapd.model.given import exactly
from flapd.model.incident import VERDICTS
from flapd.model.job import Job
from flapd.model.loss import REGIMES
from flapd.model.stall import STALL_CLASSES
from flapd.model.times import SECOND_NS
from flapd.serve.agent import Health
from flapd.serve.metrics import Scrape, render
from tests.serve.parts import FakeAgent, over_socket, over_tcp, port, view
from tests.store.jobs import job

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]

OF_JOBS = {
    "flapd_job_info",
    "flapd_job_world_size",
    "flapd_job_retry_budget_seconds",
    "flapd_job_watchdog_seconds",
}


def series(snapshot: Snapshot, *, sees_jobs: bool = True) -> Series:
    body, _ = render(Scrape(snapshot, Health(), 10, 0, sees_jobs=sees_jobs), "")
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
    }


def named(told: Series, name: str) -> dict[tuple[str, ...], float]:
    """By the values of their labels, in the order of their names."""
    return {
        tuple(value for _label, value in labels): number
        for (found, labels), number in told.items()
        if found == name
    }


def ports() -> Iterator[PortView]:
    yield view(port(key="0x1/1"))
    yield view(port(key="0x2/1", device="mlx5_1"))


def counts(names: Sequence[str], **known: int) -> dict[str, int]:
    return {**dict.fromkeys(names, 0), **known}


def running(*jobs: Job) -> Snapshot:
    return Snapshot(ports=tuple(ports()), jobs=JobsView(running=jobs))


def test_every_combination_of_enumerated_labels_is_there_from_the_start_at_0() -> None:
    told = series(running(), sees_jobs=False)

    assert named(told, "flapd_faults_total") == {(kind,): 0 for kind in FAULT_KINDS}
    assert named(told, "flapd_stalls_total") == {(klass,): 0 for klass in STALL_CLASSES}
    assert named(told, "flapd_stall_seconds_total") == {(klass,): 0 for klass in STALL_CLASSES}
    assert named(told, "flapd_incidents_total") == {(verdict,): 0 for verdict in VERDICTS}
    assert named(told, "flapd_incident_open") == {(): 0}
    claims = {(device, "1", r): 0 for device in ("mlx5_0", "mlx5_1") for r in REGIMES}
    assert named(told, "flapd_gpu_seconds_claimed_total") == claims
    assert named(told, "flapd_gpu_seconds_claimed_low_total") == claims
    assert named(told, "flapd_port_job_ranks") == {("mlx5_0", "1"): 0, ("mlx5_1", "1"): 0}
    assert not any(name in OF_JOBS for name, _labels in told)


def test_totals_are_those_of_the_engine() -> None:
    faults = counts(FAULT_KINDS, transport_error=3)
    stalls = counts(STALL_CLASSES, local_link=2)
    still = counts(STALL_CLASSES, local_link=2 * SECOND_NS + SECOND_NS // 2)
    claims = {"mlx5_0/1": {"absorbed": Claim(9.5, 7.0)}, "mlx5_9/2": {"watchdog": Claim(4.0, 1.0)}}
    verdicts = counts(VERDICTS, likely=4)
    snapshot = Snapshot(
        ports=tuple(ports()),
        jobs=JobsView(totals=JobTotals(faults, stalls, still, 5)),
        incidents=IncidentsView(2, IncidentTotals(verdicts, claims)),
    )

    told = series(snapshot)

    assert named(told, "flapd_faults_total")["transport_error",] == 3
    assert named(told, "flapd_faults_dropped_total") == {(): 5}
    assert named(told, "flapd_stalls_total")["local_link",] == 2
    assert named(told, "flapd_stall_seconds_total")["local_link",] == 2.5
    assert named(told, "flapd_incidents_total")["likely",] == 4
    assert named(told, "flapd_incident_open") == {(): 2}
    claimed = named(told, "flapd_gpu_seconds_claimed_total")
    assert claimed["mlx5_0", "1", "absorbed"] == 9.5
    assert claimed["mlx5_0", "1", "watchdog"] == 0
    assert claimed["mlx5_9", "2", "watchdog"] == 4
    assert named(told, "flapd_gpu_seconds_claimed_low_total")["mlx5_0", "1", "absorbed"] == 7


def test_a_job_is_told_while_it_runs_to_those_who_may_see_it() -> None:
    told = series(running(job(ports={"0x2/1": "traffic"})))

    assert named(told, "flapd_job_info") == {("4711",): 1}
    assert named(told, "flapd_job_world_size") == {("4711",): 1024}
    assert round(named(told, "flapd_job_retry_budget_seconds")["4711",], 6) == 30.064771
    assert named(told, "flapd_job_watchdog_seconds") == {("4711",): 600}
    assert named(told, "flapd_port_job_ranks") == {("mlx5_0", "1"): 0, ("mlx5_1", "1"): 8}
    hidden = series(running(job()), sees_jobs=False)
    assert not any(name in OF_JOBS for name, _labels in hidden)
    assert named(hidden, "flapd_port_job_ranks")["mlx5_0", "1"] == 8


def test_what_is_not_known_of_a_job_has_no_sample_and_what_has_no_end_is_infinite() -> None:
    endless = {"watchdog_seconds": exactly(math.inf, "environment")}
    told = series(running(job(world_size=None, policy=endless)))

    assert named(told, "flapd_job_world_size") == {}
    assert named(told, "flapd_job_retry_budget_seconds") == {}
    assert named(told, "flapd_job_watchdog_seconds") == {("4711",): math.inf}


def test_a_job_found_twice_is_one_series() -> None:
    told = series(running(job("job-1"), job("job-2", world_size=exactly(8, "log"))))

    assert named(told, "flapd_job_world_size") == {("4711",): 8}


async def test_a_scrape_over_the_network_has_no_series_of_jobs(tmp_path: Path) -> None:
    agent = FakeAgent(tmp_path)
    agent.shown = running(job())
    has_jobs = []

    for over in (over_tcp, over_socket):
        async with over(agent, tmp_path) as session, session.get("/metrics") as answer:
            has_jobs.append("flapd_job_info" in await answer.text())

    assert has_jobs == [False, True]
