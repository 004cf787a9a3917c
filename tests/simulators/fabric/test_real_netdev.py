"""A real veth in a network namespace is the netdev of a simulated RoCE port."""

import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from simulators.errors import SimulatorError
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import Spec, two_ports
from simulators.fabric.tree import build_tree, simulated_ports
from tests.simulators.fabric.running import Start

PATIENCE_SECONDS = 10
PORT = "class/infiniband/mlx5_1/ports/1"


class Namespace:
    """A network namespace with its own /sys and a veth in it, while a process stays there."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self._pid = process.pid
        self.netdev = f"/proc/{self._pid}/root/sys/class/net/v0"

    def ip(self, *arguments: str) -> None:
        inside = ["nsenter", "-t", str(self._pid), "-n", "ip", *arguments]
        subprocess.run(inside, check=True, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[Namespace]:
    if os.geteuid() != 0:
        pytest.skip("a network namespace with a veth needs root")
    steps = (
        "mount -t sysfs none /sys",
        "ip link add v0 type veth peer name v1",
        "ip link set v0 up",
        "ip link set v1 up",
        "echo ready",
        "exec cat",
    )
    process = subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-ec", "; ".join(steps)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    is_ready = process.stdout.readline() == b"ready\n"
    try:
        if not is_ready:
            pytest.skip("no veth can be made here")
        yield Namespace(process)
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(PATIENCE_SECONDS)


def spec_of(netdev: str) -> Spec:
    ib, roce = two_ports().ports
    return Spec((ib, replace(roce, netdev="v0", real_netdev=netdev)))


def wait_for(path: Path, content: str) -> None:
    """The kernel tells of a carrier when it has time to."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while path.read_text() != content:
        assert time.monotonic() < deadline, f"{path} is {path.read_text()!r}"
        time.sleep(0.01)


@pytest.mark.skipif(fuse_missing() is not None, reason=str(fuse_missing()))
def test_a_port_goes_down_with_the_real_carrier_and_counts_as_it_does(
    start: Start, namespace: Namespace
) -> None:
    running = start(spec_of(namespace.netdev))
    port, net = running.root / PORT, running.root / "class/net/v0"
    wait_for(port / "state", "4: ACTIVE\n")
    downs = int((net / "carrier_down_count").read_text())

    namespace.ip("link", "set", "v1", "down")
    wait_for(port / "state", "1: DOWN\n")
    carrier = (net / "carrier").read_text()
    namespace.ip("link", "set", "v1", "up")
    wait_for(port / "state", "4: ACTIVE\n")

    assert carrier == "0\n"
    assert int((net / "carrier_down_count").read_text()) == downs + 1
    assert (net / "ifindex").read_text() == Path(namespace.netdev, "ifindex").read_text()
    assert (port / "gid_attrs/ndevs/0").read_text() == "v0\n"
    assert (net / "device/infiniband/mlx5_1").is_dir()
    assert running.truth.ports[1].real_netdev == namespace.netdev


@pytest.mark.skipif(fuse_missing() is not None, reason=str(fuse_missing()))
def test_a_disabled_real_netdev_is_a_disabled_port(start: Start, namespace: Namespace) -> None:
    running = start(spec_of(namespace.netdev))

    namespace.ip("link", "set", "v0", "down")

    with pytest.raises(OSError, match="Invalid argument"):
        (running.root / "class/net/v0/carrier").read_text()
    assert (running.root / PORT / "state").read_text() == "1: DOWN\n"
    assert (running.root / PORT / "phys_state").read_text() == "3: Disabled\n"


@pytest.mark.skipif(fuse_missing() is not None, reason=str(fuse_missing()))
def test_reads_of_a_real_netdev_that_is_gone_say_so(start: Start, namespace: Namespace) -> None:
    running = start(spec_of(namespace.netdev))

    namespace.ip("link", "del", "v0")

    with pytest.raises(OSError, match="No such device"):
        (running.root / "class/net/v0/carrier_down_count").read_text()
    assert (running.root / PORT / "state").read_text() == "1: DOWN\n"


def test_a_real_netdev_that_does_not_exist_is_refused() -> None:
    with pytest.raises(SimulatorError, match="real_netdev /sys/class/net/nothing0"):
        build_tree(simulated_ports(spec_of("/sys/class/net/nothing0"), 0, 0))
