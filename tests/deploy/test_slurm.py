"""The scripts for Slurm, with a made-up controller and flapd: never a herd, never a guess."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.programs import program

ROOT = Path(__file__).parents[2]
SLURM = ROOT / "deploy/slurm"
SCRIPTS = ("flapd-mark", "flapd-drain", "flapd-task-prolog")
FLAPPING = "unhealthy: mlx5_0/1 is flapping"

SCONTROL = """#!/bin/sh
# Nodes are files of a line, as `scontrol --oneliner show node` prints them.
cd "$NODES" || exit 1
case "$*" in
"--oneliner show nodes") cat ./* ;;
"--oneliner show node "*) cat "$4" ;;
"update NodeName="*)
  node=${2#NodeName=}
  shift 2
  printf '%s ' "$node" "$@" >>"$TOLD"
  echo >>"$TOLD"
  for change in "$@"; do
    case "$change" in
    State=DRAIN) sed -i 's/ State=IDLE / State=IDLE+DRAIN /' "$node" ;;
    Comment=) sed -i 's/ Comment=.*//' "$node" ;;
    *) sed -i "s|\\$| $change|" "$node" ;;
    esac
  done ;;
*) exit 1 ;;
esac
"""


class Cluster:
    def __init__(self, directory: Path) -> None:
        self.nodes = directory / "nodes"
        self.told = directory / "told"
        self._bin = directory / "bin"
        for made in (self.nodes, self._bin):
            made.mkdir()
        self.told.touch()
        self.remembered = directory / "remembered"
        self._program("scontrol", SCONTROL)

    def add(self, name: str, state: str = "IDLE", more: str = "") -> None:
        line = f"NodeName={name} Arch=x86_64 CPUTot=8 State={state} ThreadsPerCore=1{more}\n"
        (self.nodes / name).write_text(line)

    def shows(self, name: str) -> str:
        return (self.nodes / name).read_text()

    def flapd_says(self, does: str) -> None:
        self._program("flapd", f"#!/bin/sh\n{does}\n")

    def run(self, script: str, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        environment = {
            **os.environ,
            "PATH": f"{self._bin}:{os.environ['PATH']}",
            "NODES": str(self.nodes),
            "TOLD": str(self.told),
            "FLAPD_MARK": str(self.remembered),
            "SLURMD_NODENAME": "n1",
            **more,
        }
        return subprocess.run(
            [SLURM / script, *arguments],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    def updates(self) -> list[str]:
        return [line.strip() for line in self.told.read_text().splitlines()]

    def drained(self) -> list[str]:
        return [line.split()[0] for line in self.updates() if "State=DRAIN" in line]

    def _program(self, name: str, text: str) -> None:
        (self._bin / name).write_text(text)
        (self._bin / name).chmod(0o755)


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_shellcheck_finds_nothing() -> None:
    scripts = [SLURM / script for script in SCRIPTS]
    done = subprocess.run([program("shellcheck"), *scripts], capture_output=True, check=False)
    assert done.returncode == 0, done.stdout.decode()


def test_a_node_is_marked_once_and_drained_by_nobody_but_the_one_program(cluster: Cluster) -> None:
    cluster.add("n1")
    cluster.flapd_says(f"echo '{FLAPPING}'; exit 1")

    assert [cluster.run("flapd-mark").returncode for _ in range(3)] == [0, 0, 0]

    assert cluster.updates() == ["n1 Comment=flapd: mlx5_0/1 is flapping"]


def test_a_node_that_is_well_again_loses_its_mark(cluster: Cluster) -> None:
    cluster.add("n1")
    cluster.flapd_says(f"echo '{FLAPPING}'; exit 1")
    cluster.run("flapd-mark")
    cluster.flapd_says("echo 'healthy: 8 ports watched'")
    cluster.run("flapd-mark")

    assert cluster.updates()[-1] == "n1 Comment="
    assert "Comment" not in cluster.shows("n1")


def test_a_mark_from_before_a_boot_is_taken_out(cluster: Cluster) -> None:
    cluster.add("n1", more=" Comment=flapd: mlx5_0/1 is flapping")
    cluster.flapd_says("echo 'healthy: 8 ports watched'")
    cluster.run("flapd-mark")

    assert cluster.updates() == ["n1 Comment="]


def test_a_comment_of_somebody_else_stays(cluster: Cluster) -> None:
    cluster.add("n1", more=" Comment=loan of team red")
    cluster.flapd_says(f"echo '{FLAPPING}'; exit 1")

    assert cluster.run("flapd-mark").returncode == 0
    assert cluster.updates() == []


@pytest.mark.parametrize(
    "does",
    [
        "echo 'healthy, as nothing is known: no agent answers'",
        "echo 'Traceback (most recent call last):' >&2; exit 1",
        "exit 127",
        "kill -9 $$",
    ],
)
def test_what_cannot_be_told_marks_no_node_and_fails_no_job(cluster: Cluster, does: str) -> None:
    cluster.add("n1")
    cluster.flapd_says(does)

    assert cluster.run("flapd-mark").returncode == 0
    prolog = cluster.run("flapd-task-prolog")

    assert cluster.updates() == []
    assert (prolog.returncode, prolog.stdout) == (0, "")


def test_a_controller_that_does_not_answer_is_asked_again_the_next_time(cluster: Cluster) -> None:
    cluster.flapd_says(f"echo '{FLAPPING}'; exit 1")
    assert cluster.run("flapd-mark").returncode == 0
    cluster.add("n1")
    cluster.run("flapd-mark")

    assert cluster.updates() == ["n1 Comment=flapd: mlx5_0/1 is flapping"]


def test_of_a_marked_fleet_no_more_nodes_are_drained_than_may_be(cluster: Cluster) -> None:
    for number in range(40):
        cluster.add(f"n{number:02}", more=f" Comment=flapd: mlx5_{number}/1 is flapping")

    first, second = cluster.run("flapd-drain", "3"), cluster.run("flapd-drain", "3")

    assert cluster.drained() == ["n00", "n01", "n02"]
    assert len(re.findall("waits", first.stderr)) == len(re.findall("waits", second.stderr)) == 37


def test_a_repaired_node_makes_room_for_the_next(cluster: Cluster) -> None:
    for name in ("n1", "n2"):
        cluster.add(name, more=" Comment=flapd: mlx5_0/1 is flapping")
    cluster.run("flapd-drain", "1")
    cluster.add("n1")
    cluster.run("flapd-drain", "1")

    assert cluster.drained() == ["n1", "n2"]


def test_the_reason_is_what_flapd_said_and_ends_where_the_next_field_begins(
    cluster: Cluster,
) -> None:
    cluster.add("n1", more=" Comment=flapd: mlx5_0/1 flapped 5 times in 1 h  Extra=rack 7")
    cluster.run("flapd-drain", "1")

    assert cluster.updates() == [
        "n1 State=DRAIN Reason=flapd: mlx5_0/1 flapped 5 times in 1 h",
    ]


@pytest.mark.parametrize("state", ["IDLE+DRAIN", "MIXED+DRAIN", "DOWN*", "DOWN+DRAIN", "FAIL"])
def test_a_node_that_takes_no_jobs_anyway_is_left_alone(cluster: Cluster, state: str) -> None:
    cluster.add("n1", state=state, more=" Comment=flapd: mlx5_0/1 is flapping")

    assert cluster.run("flapd-drain", "5").returncode == 0
    assert cluster.updates() == []


def test_what_others_drained_takes_no_room(cluster: Cluster) -> None:
    cluster.add("n1", state="IDLE+DRAIN", more=" Reason=disk")
    cluster.add("n2", more=" Comment=flapd: mlx5_0/1 is flapping")
    cluster.run("flapd-drain", "1")

    assert cluster.drained() == ["n2"]


@pytest.mark.parametrize("most", [(), ("many",), ("-1",), ("",)])
def test_without_a_number_nothing_is_drained(cluster: Cluster, most: tuple[str, ...]) -> None:
    cluster.add("n1", more=" Comment=flapd: mlx5_0/1 is flapping")
    done = cluster.run("flapd-drain", *most)

    assert (done.returncode, cluster.updates()) == (2, [])
    assert "usage: flapd-drain MOST" in done.stderr


def test_the_output_of_a_job_tells_once_a_node_what_is_wrong_with_it(cluster: Cluster) -> None:
    cluster.flapd_says(f"echo '{FLAPPING}'; exit 1")

    first = cluster.run("flapd-task-prolog", SLURM_LOCALID="0")
    second = cluster.run("flapd-task-prolog", SLURM_LOCALID="1")

    assert (first.returncode, first.stdout) == (0, f"print flapd on n1: {FLAPPING}\n")
    assert (second.returncode, second.stdout) == (0, "")


@pytest.mark.parametrize("name", ["slurm.example.conf", "flapd-drain.service"])
def test_what_the_examples_name_is_here(name: str) -> None:
    named: list[str] = re.findall(r"/usr/local/sbin/([\w-]+)", (SLURM / name).read_text())

    assert named
    assert set(named) <= set(SCRIPTS)


def test_systemd_takes_the_units_of_the_drainer(tmp_path: Path) -> None:
    for name in ("flapd-drain.service", "flapd-drain.timer"):
        text = (SLURM / name).read_text().replace("/usr/local/sbin", str(SLURM))
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [program("systemd-analyze"), "verify", "--man=no", tmp_path / "flapd-drain.timer"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
