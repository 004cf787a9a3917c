"""A post-mortem of a job's log and dumps finds what the agent found while the job died."""

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from simulators.fabric.mount import fuse_missing
from simulators.job.happenings import Outage
from simulators.job.job import simulate
from simulators.job.live import live_node
from simulators.job.node import node_scenario
from simulators.job.record import Run
from simulators.job.spec import JobSpec, Phase, Software, Steps, Transport
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.long,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

RANKS = 16
FLAP = Outage(at_seconds=9.0, down_seconds=6.0, port=3)
ONLY_LIVE = {"counter"}
"""Kinds of faults that no log tells."""
SAID = ("kind", "form", "rank", "hca", "event", "status", "seq", "time", "primary", "repeats")

Item = dict[str, Any]


class Answers(NamedTuple):
    live: list[Item]
    """Faults that the agent told."""
    incident: Item
    """The agent's."""
    flap: str
    after: Item
    """What analyze printed."""


def dying_job() -> Run:
    """With this seed its end takes 8 s."""
    return simulate(
        JobSpec(
            seed=28,
            job=str(os.getpid()),
            nodes=4,
            ranks_per_node=RANKS,
            restarts=0,
            start_up_seconds=2.0,
            duration_seconds=100.0,
            steps=Steps(phases=(Phase(0.5, 0.1),), collectives=4, jitter=0.02, ahead_seconds=0.2),
            transport=Transport(ib_timeout=16),
            software=Software(
                torch="2.7.1", nccl="2.26.2", watchdog_seconds=20.0, nccl_debug="INFO"
            ),
            happenings=(FLAP,),
        )
    )


def of_job(node: SimulatedNode, what: str, job: str) -> list[Item]:
    items: list[Item] = node.get(f"/api/v1/{what}?limit=1000")["items"]
    return [item for item in items if item["job"] == job]


def is_all_told(node: SimulatedNode, job: str, log: Path) -> bool:
    """Up to the last line of the log, of which there will be no more."""
    jobs, faults = of_job(node, "jobs", job), of_job(node, "faults", job)
    if not jobs or jobs[0]["until"] is None:
        return False
    ends = log.read_bytes().count(b"closing signal SIGTERM")
    told = [int(one["repeats"]) for one in faults if one["form"] == "worker_signalled"]
    return sum(told) == ends


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Answers]:
    run, directory = dying_job(), tmp_path_factory.mktemp("analyze")
    job = run.spec.job
    node = SimulatedNode(
        directory, f'[jobs]\nevery = "1s"\n[dumps]\npaths = ["{directory}/job/dumps/*"]'
    )
    with (
        ExitStack() as stack,
        simulated_fabric(node, node_scenario(run, 0), origin_in_seconds=3.0) as truth,
        live_node(run, 0, directory / "job", truth.origin_monotonic_ns) as live,
    ):
        stack.callback(node.kill)
        node.start()
        until(node.is_ready, "a ready agent")
        until(lambda: of_job(node, "jobs", job), "the job")
        until(lambda: is_all_told(node, job, live.log), "the end of the job", seconds=40.0)
        flaps = directory / "flaps.json"
        config = ("--config", str(node.config))
        flaps.write_text(node.flapd("flaps", "--json", *config).stdout)
        told = node.flapd(
            "analyze",
            str(live.log),
            *map(str, sorted(live.dumps.iterdir())),
            *("--flaps", str(flaps), "--json", *config),
        )
        assert told.returncode == 0, told.stderr
        (incident,) = of_job(node, "incidents", job)
        yield Answers(
            live=of_job(node, "faults", job),
            incident=incident,
            flap=node.get("/api/v1/flaps")["items"][0]["id"],
            after=json.loads(told.stdout),
        )


def said(faults: list[Item]) -> list[tuple[Any, ...]]:
    """What each says, whoever read it and when."""
    wanted = (one for one in faults if one["kind"] not in ONLY_LIVE)
    return sorted((tuple(one[name] for name in SAID) for one in wanted), key=str)


def test_every_file_is_read(answers: Answers) -> None:
    assert len(answers.after["files"]) > RANKS / 2
    assert [one for one in answers.after["files"] if one.get("error")] == []


def test_it_finds_the_same_faults(answers: Answers) -> None:
    assert said(answers.after["faults"]) == said(answers.live)


def test_it_finds_the_same_cause_and_verdict(answers: Answers) -> None:
    (after,) = answers.after["incidents"]
    live = answers.incident

    assert (after["verdict"], after["regime"]) == ("caused", "transport_abort")
    assert (live["verdict"], live["regime"]) == ("caused", "transport_abort")
    assert after["causes"][0]["flap"] == live["causes"][0]["flap"] == answers.flap
    assert after["world_size"] == live["world_size"]


def test_it_finds_the_same_policy(answers: Answers) -> None:
    (after,) = answers.after["incidents"]
    for name in ("ib_timeout", "retry_cnt", "watchdog_seconds"):
        assert after["policy"][name]["value"] == answers.incident["policy"][name]["value"], name
