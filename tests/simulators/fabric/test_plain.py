"""The same tree as ordinary files."""

import os
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from simulators.fabric.changes import Gone
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Fault, Spec, two_ports
from tests.simulators.fabric.running import REPOSITORY, Start

PORT = "class/infiniband/mlx5_0/ports/1"
GRACE_NS = 2_000_000_000


def wait_for(descriptor: int, content: bytes, until_ns: int) -> int:
    """The monotonic time at which the file showed it."""
    while os.pread(descriptor, 4096, 0) != content:
        assert time.monotonic_ns() < until_ns
        time.sleep(0)
    return time.monotonic_ns()


def test_a_kept_descriptor_sees_the_edges_soon_and_never_early(start: Start) -> None:
    running = start(two_ports((Flap(0.2, 0.2),)), "--plain", "--origin-in", "0.1")
    outage = running.truth.outages[0]
    descriptor = os.open(running.root / PORT / "state", os.O_RDONLY | os.O_CLOEXEC)

    down_ns = wait_for(descriptor, b"1: DOWN\n", outage.up_monotonic_ns)
    up_ns = wait_for(descriptor, b"4: ACTIVE\n", outage.up_monotonic_ns + GRACE_NS)
    os.close(descriptor)

    assert down_ns >= outage.down_monotonic_ns
    assert up_ns >= outage.up_monotonic_ns
    assert (running.root / PORT / "counters/link_downed").read_text() == "1\n"


def test_traffic_moves_between_edges(start: Start) -> None:
    data = start(two_ports(), "--plain").root / PORT / "counters/port_rcv_data"
    first = data.read_text()
    deadline = time.monotonic_ns() + GRACE_NS

    while data.read_text() == first:
        assert time.monotonic_ns() < deadline


def test_links_work_and_files_that_would_fail_are_left_out(start: Start) -> None:
    root = start(two_ports(), "--plain").root

    assert (root / "class/infiniband/mlx5_0/device/driver").resolve().name == "mlx5_core"
    assert (root / "class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/0").read_text() == "eth2\n"
    assert not (root / "class/infiniband/mlx5_1/ports/1/gid_attrs/ndevs/9").exists()


def test_sigterm_takes_the_tree_away(start: Start) -> None:
    running = start(two_ports(), "--plain")

    assert running.end() == 0
    assert list(running.root.iterdir()) == []


@pytest.mark.parametrize(
    ("spec", "occupied", "said"),
    [
        (Spec(two_ports().ports, (Fault("/class/net/*", "hang", 0, 1),)), False, "plain files"),
        (
            Spec(two_ports().ports, (Fault("/class/net/eth2/carrier", "hang", 0, 1),)),
            False,
            "faults",
        ),
        (Spec(two_ports().ports, (), (Gone("mlx5_0", 1),)), False, "come and go"),
        (two_ports(), True, "is not empty"),
    ],
)
def test_what_cannot_be_served_is_told_in_one_sentence(
    tmp_path: Path, spec: Spec, occupied: bool, said: str
) -> None:
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(spec))
    root = tmp_path / "sys"
    root.mkdir()
    if occupied:
        (root / "mine").write_text("keep")
    places = ["--spec", tmp_path / "spec.json", "--mount", root, "--truth", tmp_path / "truth"]

    ended = subprocess.run(
        [sys.executable, "-m", "simulators.fabric", *map(str, places), "--plain"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
    assert not (tmp_path / "truth").exists()
    assert occupied == bool(list(root.iterdir()))
