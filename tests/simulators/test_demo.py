"""The demo ends cleanly, whoever ends it."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulators.cluster.fleet import Fleet
from simulators.demo import words
from simulators.demo.site import nats_server
from simulators.demo.story import FLAPS, NEIGHBOURS, NODE, fleet_story, gone_seconds, story
from tests.system.harness import ROOT, until

RANKS = 8
"""On its node."""


with_server = pytest.mark.skipif(nats_server() is None, reason="there is no nats-server here")


@contextmanager
def demo(*options: str) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Once it says where to look: then all of it runs; and where it keeps its files."""
    command = [sys.executable, "-m", "simulators.demo", "--end", *options]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if "flapd watch --config" in line)
            directory = Path(line.split()[-1]).parent.parent
            yield process, str(directory)
            shutil.rmtree(directory, ignore_errors=True)
        finally:
            process.kill()


def running(directory: str) -> list[str]:
    """Its processes, and those of the job whose dumps would lie there."""
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        try:
            said = (place / "cmdline").read_bytes() + (place / "environ").read_bytes()
        except OSError:
            continue
        if directory.encode() in said:
            found.append(place.name)
    return found


@pytest.mark.system
@pytest.mark.parametrize(
    ("number", "code", "options"),
    [
        (signal.SIGINT, 0, ["--one-node"]),
        (signal.SIGTERM, 0, ["--one-node"]),
        (signal.SIGKILL, -9, ["--one-node"]),
        pytest.param(signal.SIGINT, 0, [], marks=[pytest.mark.long, with_server]),
        pytest.param(signal.SIGKILL, -9, [], marks=[pytest.mark.long, with_server]),
    ],
)
def test_nothing_is_left_of_a_demo_that_is_ended(
    number: signal.Signals, code: int, options: list[str]
) -> None:
    with demo(*options) as (process, directory):
        until(lambda: len(running(directory)) > RANKS, "its processes")
        process.send_signal(number)
        assert process.wait(20) == code
        until(lambda: not running(directory), "the end of all of them")


def test_the_job_waits_two_flaps_out_and_dies_of_the_third() -> None:
    run = story("1")

    assert [one.kind for one in run.truth.symptoms] == ["stall", "stall", "error"]
    assert run.truth.world_size == 1024
    assert gone_seconds(run) < FLAPS[-1].usable_at + 5


def test_others_tell_of_errors_before_the_node_does_whose_link_it_is() -> None:
    run = story("1")

    errors = [one for one in run.messages if one.name == "completion"]
    tellers = [run.spec.node_of(one.rank) for one in sorted(errors, key=lambda one: one.at)]
    assert set(tellers[:2]) == set(NEIGHBOURS)
    assert tellers[2] == NODE


def test_all_nodes_of_the_fleet_play_the_same_story() -> None:
    (job,) = Fleet(fleet_story("1")).jobs

    assert job.run.truth == story("1").truth
    assert job.run.messages == story("1").messages


@pytest.mark.system
@pytest.mark.long
@with_server
def test_the_hub_names_the_port_and_the_price() -> None:
    command = [sys.executable, "-m", "simulators.demo", "--end"]
    told = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False
    )

    assert told.returncode == 0, told.stdout + told.stderr
    assert "node127 tells of an error: transport error on rank 1021 (mlx5_5)" in told.stdout
    assert "caused by node000 mlx5_5/1 (99." in told.stdout
    assert "GPU-seconds of 1,024 GPUs" in told.stdout
    assert "The on-call page of the fleet: http://" in told.stdout


def test_a_revision_that_only_knows_a_number_better_is_no_news() -> None:
    first, second = "caused by x (99.5 %): 1,024 GPU-s", "caused by x (99.9 %): 2,048 GPU-s"

    assert words.told_once(first) == words.told_once(second)
    assert words.told_once(first) != words.told_once("likely by x (99.5 %): 1,024 GPU-s")
