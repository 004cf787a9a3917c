"""The demo ends cleanly, whoever ends it."""

import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from simulators.demo import words
from simulators.demo.story import FLAPS, gone_seconds, story
from tests.system.harness import ROOT, until

RANKS = 8
"""On its node."""


@contextmanager
def demo() -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """Once it says where to look: then all of it runs; and where it keeps its files."""
    command = [sys.executable, "-m", "simulators.demo", "--end"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            line = next(line for line in process.stdout if "flapd watch --config" in line)
            directory = Path(line.split()[-1]).parent
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
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -9)]
)
def test_nothing_is_left_of_a_demo_that_is_ended(number: signal.Signals, code: int) -> None:
    with demo() as (process, directory):
        until(lambda: len(running(directory)) > RANKS, "its processes")
        process.send_signal(number)
        assert process.wait(20) == code
        until(lambda: not running(directory), "the end of all of them")


def test_the_job_waits_two_flaps_out_and_dies_of_the_third() -> None:
    run = story("1")

    assert [one.kind for one in run.truth.symptoms] == ["stall", "stall", "error"]
    assert run.truth.world_size == 1024
    assert gone_seconds(run) < FLAPS[-1].usable_at + 5


def test_a_revision_that_only_knows_a_number_better_is_no_news() -> None:
    first, second = "caused by x (99.5 %): 1,024 GPU-s", "caused by x (99.9 %): 2,048 GPU-s"

    assert words.told_once(first) == words.told_once(second)
    assert words.told_once(first) != words.told_once("likely by x (99.5 %): 1,024 GPU-s")
