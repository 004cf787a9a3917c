"""From a rank's log line to a price: the real agent beside a job's real processes.

One story: a flap that the job's transport waits out, the agent killed, then a flap that the job
dies of.
"""

import os
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from flapd.model.times import SECOND_NS
from simulators.fabric.mount import fuse_missing
from simulators.job.happenings import Outage
from simulators.job.job import simulate
from simulators.job.live import live_node
from simulators.job.node import node_scenario
from simulators.job.record import Run
from simulators.job.spec import JobSpec, Phase, Software, Steps, Transport
from simulators.job.truth import Symptom
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

RANKS = 2
ABSORBED = Outage(at_seconds=36.0, down_seconds=1.5, port=0)
"""The rhythm of the job's traffic is known by then: after fifty steps."""
FATAL = Outage(at_seconds=43.0, down_seconds=5.0, port=1)
KILLED_AT_SECONDS = 39.0
"""The first incident is open, and the second to come."""
CLOCK_SECONDS = 0.3
"""By which begin and end of a stall may be seen early or late, ten samples a second."""

Item = dict[str, Any]


class Story(NamedTuple):
    """What the agent tells when all is over."""

    run: Run
    node: SimulatedNode
    job: Item
    flaps: list[Item]
    faults: list[Item]
    stalls: list[Item]
    absorbed: Item
    fatal: Item
    log: bytes


def simulated_job() -> Run:
    """Its name is this test's: agents see the jobs of all who test on this machine.

    With this seed both flaps hit it while it moves data, and its end takes 6 s.
    """
    return simulate(
        JobSpec(
            seed=103,
            job=str(os.getpid()),
            nodes=16,
            ranks_per_node=RANKS,
            restarts=0,
            start_up_seconds=2.0,
            duration_seconds=100.0,
            steps=Steps(phases=(Phase(0.5, 0.1),), collectives=4, jitter=0.02, ahead_seconds=0.2),
            transport=Transport(ib_timeout=16),
            software=Software(
                torch="2.7.1", nccl="2.26.2", watchdog_seconds=20.0, nccl_debug="INFO"
            ),
            happenings=(ABSORBED, FATAL),
        )
    )


def of_job(node: SimulatedNode, what: str, job: str) -> list[Item]:
    """In order of time."""
    found: list[Item] = node.get(f"/api/v1/{what}?limit=1000")["items"]
    return [item for item in reversed(found) if item["job"] == job]


def is_over(node: SimulatedNode, job: str) -> bool:
    """The job is gone, what it died of is told, and its dumps are read."""
    jobs, incidents = of_job(node, "jobs", job), of_job(node, "incidents", job)
    policy = jobs[-1]["policy"]
    return (
        jobs[-1]["until"] is not None
        and policy["watchdog_seconds"]["source"] != "default"
        and incidents[-1]["regime"] == "transport_abort"
    )


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    run, directory = simulated_job(), tmp_path_factory.mktemp("live")
    job = run.spec.job
    node = SimulatedNode(
        directory,
        f"""
            [sampling]
            interval = "50ms"
            [jobs]
            every = "1s"
            [dumps]
            paths = ["{directory}/job/dumps/*"]
        """,
    )
    with (
        ExitStack() as stack,
        simulated_fabric(node, node_scenario(run, 0), origin_in_seconds=1.0) as truth,
        live_node(run, 0, directory / "job", truth.origin_monotonic_ns) as live,
    ):
        stack.callback(node.kill)
        node.start()
        until(node.is_ready, "a ready agent")
        wait_for(truth.origin_monotonic_ns + round(KILLED_AT_SECONDS * SECOND_NS))
        node.kill()
        node.start()
        until(node.is_ready, "a ready agent after SIGKILL")
        until(lambda: is_over(node, job), "the end of the job")
        absorbed, fatal = of_job(node, "incidents", job)
        yield Story(
            run=run,
            node=node,
            job=of_job(node, "jobs", job)[-1],
            flaps=list(reversed(node.get("/api/v1/flaps")["items"])),
            faults=of_job(node, "faults", job),
            stalls=of_job(node, "stalls", job),
            absorbed=absorbed,
            fatal=fatal,
            log=live.log.read_bytes(),
        )


def wait_for(monotonic_ns: int) -> None:
    time.sleep(max(0, monotonic_ns - time.monotonic_ns()) / SECOND_NS)


def symptom_of(story: Story, kind: str) -> Symptom:
    (symptom,) = [one for one in story.run.truth.symptoms if one.kind == kind]
    return symptom


def test_the_job_is_seen_with_its_ports_and_the_policy_in_force(story: Story) -> None:
    job = story.job

    assert job["world_size"] == story.run.spec.world_size
    assert job["ports"] == [f"mlx5_{number}/1" for number in range(RANKS)]
    assert set(job["port_uses"].values()) == {"log"}
    policy = job["policy"]
    assert (policy["ib_timeout"]["value"], policy["ib_timeout"]["source"]) == (16, "log")
    assert (policy["watchdog_seconds"]["value"], policy["watchdog_seconds"]["source"]) == (
        20.0,
        "dump",
    )


def test_a_flap_and_the_stall_that_it_made_are_one_incident_with_a_price(story: Story) -> None:
    incident, flap = story.absorbed, story.flaps[0]
    symptom = symptom_of(story, "stall")

    assert (incident["verdict"], incident["regime"]) == ("caused", "absorbed")
    assert incident["causes"][0]["flap"] == flap["id"]
    assert flap["port"] == f"mlx5_{ABSORBED.port}/1"
    gpus = story.run.spec.world_size
    loss = incident["gpu_seconds"]
    assert loss["low"] <= symptom.gpu_seconds + gpus * CLOCK_SECONDS
    assert loss["high"] >= symptom.gpu_seconds - gpus * CLOCK_SECONDS
    assert incident["cost"]["likely"] == pytest.approx(loss["likely"] / 3600 * 2.5, abs=0.01)


def test_the_flap_that_the_job_died_of_is_told_with_its_first_error(story: Story) -> None:
    incident = story.fatal
    symptom = symptom_of(story, "error")

    assert (incident["verdict"], incident["regime"]) == ("caused", "transport_abort")
    assert incident["causes"][0]["flap"] == story.flaps[1]["id"]
    (error,) = [one for one in story.faults if one["kind"] == "transport_error"]
    assert error["primary"]
    assert error["rank"] == FATAL.port
    assert error["id"] in incident["symptoms"]
    detect = incident["lost_seconds"]["detect"]
    assert detect == pytest.approx(symptom.lost.detect, abs=1.0 + CLOCK_SECONDS)


def test_why_tells_it_and_names_the_port(story: Story) -> None:
    told = story.node.flapd("why", "--job", story.run.spec.job, "--config", str(story.node.config))

    assert told.returncode == 0, told.stderr
    assert told.stdout.startswith(f"{story.fatal['id']}: caused by mlx5_{FATAL.port}/1")
    assert "transport error" in told.stdout
    assert "GPU-s" in told.stdout


def test_an_agent_that_was_killed_in_the_middle_loses_nothing_and_doubles_nothing(
    story: Story,
) -> None:
    assert [flap["count"] for flap in story.flaps] == [1, 1]
    assert [flap["down_seconds"]["max"] for flap in story.flaps] == [
        pytest.approx(outage.down_seconds, abs=1.5) for outage in (ABSORBED, FATAL)
    ]
    absorbed = symptom_of(story, "stall")
    assert len(story.stalls) == 2
    assert story.stalls[0]["seconds"] == pytest.approx(
        absorbed.end - absorbed.begin, abs=2 * CLOCK_SECONDS + 0.5
    )
    said = [one["repeats"] for one in story.faults if one["kind"] == "port_event"]
    assert sum(said) == story.log.count(b"Got async error event")
    metrics = story.node.get_text("/metrics")
    downs = [line for line in metrics.splitlines() if line.startswith("flapd_link_downs_total")]
    assert sum(float(line.split()[-1]) for line in downs) == 2


def test_nothing_of_the_job_is_left_when_it_is_over(story: Story) -> None:
    name = f"SLURM_JOB_ID={story.run.spec.job}\0".encode()
    assert [pid for pid, block in environments() if name in block] == []


def environments() -> Iterator[tuple[str, bytes]]:
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            yield path.parent.name, path.read_bytes()
        except OSError:
            continue
