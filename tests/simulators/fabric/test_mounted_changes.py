"""What comes and goes under a mount, as readers see it through the kernel and what it caches."""

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from simulators.fabric.changes import Change, Gone, NetdevReplaced, Renamed
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import Fault, Spec, two_ports
from tests.simulators.fabric.running import Start

pytestmark = pytest.mark.skipif(fuse_missing() is not None, reason=str(fuse_missing()))

PATIENCE_SECONDS = 10.0
DEVICES = "class/infiniband"
STATE = f"{DEVICES}/mlx5_0/ports/1/state"
ACTIVE = b"4: ACTIVE\n"

Outcome = bytes | int | list[str] | None


def with_changes(*changes: Change) -> Spec:
    return replace(two_ports(), changes=changes)


def outcome(ask: Callable[[], Outcome]) -> Outcome:
    """What it gives, or the number of the error it gives."""
    try:
        return ask()
    except OSError as error:
        return error.errno


def names(directory: Path | int) -> list[str]:
    return sorted(os.listdir(directory))  # noqa: PTH208 - of a descriptor as well


def until(condition: Callable[[], bool]) -> None:
    """Looks until it is so: changes come by the clock, and machines may be slow."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


class Reader:
    """Keeps a descriptor of a file and one of its directory from the start on."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._kept = os.open(path, os.O_RDONLY | os.O_CLOEXEC)

    def kept(self) -> Outcome:
        return outcome(lambda: os.pread(self._kept, 4096, 0))

    def is_gone(self) -> bool:
        return self.kept() == errno.ENODEV

    def opened(self) -> Outcome:
        return outcome(self._path.read_bytes)

    def close(self) -> None:
        os.close(self._kept)


def test_a_device_that_vanishes_is_gone_at_once_and_comes_back_as_another(start: Start) -> None:
    running = start(with_changes(Gone("mlx5_0", 0.5, 2.0)), "--origin-in", "0.5")
    reader = Reader(running.root / STATE)

    def listed() -> list[str]:
        return names(running.root / DEVICES)

    before = (reader.kept(), reader.opened(), listed())
    until(reader.is_gone)
    gone = (reader.kept(), reader.opened(), listed())
    exists = (running.root / STATE).exists()
    until(lambda: reader.opened() == ACTIVE)
    back = (reader.kept(), reader.opened(), listed())
    reader.close()

    assert before == (ACTIVE, ACTIVE, ["mlx5_0", "mlx5_1"])
    assert gone == (errno.ENODEV, errno.ENOENT, ["mlx5_1"])
    assert not exists
    assert back == (errno.ENODEV, ACTIVE, ["mlx5_0", "mlx5_1"])


def test_a_renamed_device_is_found_by_its_new_name_alone(start: Start) -> None:
    running = start(with_changes(Renamed("mlx5_0", 0.4, "mlx5_9")), "--origin-in", "0.6")
    devices = running.root / DEVICES
    reader = Reader(running.root / STATE)
    renamed = devices / "mlx5_9/ports/1/state"

    before = outcome(renamed.read_bytes)
    until(reader.is_gone)

    assert before == errno.ENOENT
    assert reader.kept() == errno.ENODEV
    assert reader.opened() == errno.ENOENT
    assert renamed.read_bytes() == ACTIVE
    assert (devices / "mlx5_9").readlink().name == "mlx5_9"
    assert (devices / "mlx5_9/device/net/ib0/carrier").read_bytes() == b"1\n"
    reader.close()


def test_a_device_plugged_in_later_was_looked_for_before(start: Start) -> None:
    running = start(with_changes(Gone("mlx5_0", end_seconds=0.4)), "--origin-in", "0.6")
    path = running.root / STATE

    before = outcome(path.read_bytes)

    assert before == errno.ENOENT
    until(lambda: outcome(path.read_bytes) == ACTIVE)


def test_a_netdev_is_replaced_while_its_port_stays(start: Start) -> None:
    running = start(with_changes(NetdevReplaced("mlx5_1", 0.4, "eth9")), "--origin-in", "0.6")
    net = running.root / "class/net"
    netdev = Reader(net / "eth2/carrier_down_count")
    gid = Reader(running.root / DEVICES / "mlx5_1/ports/1/gid_attrs/ndevs/0")

    before = (netdev.kept(), gid.kept())
    until(netdev.is_gone)

    assert before == (b"1\n", b"eth2\n")
    assert (netdev.kept(), netdev.opened()) == (errno.ENODEV, errno.ENOENT)
    assert (gid.kept(), gid.opened()) == (b"eth9\n", b"eth9\n")
    assert (net / "eth9/carrier_down_count").read_bytes() == b"0\n"
    assert names(running.root / DEVICES / "mlx5_1/device/net") == ["eth9"]
    netdev.close()
    gid.close()


def test_a_directory_held_open_is_empty_of_what_is_gone(start: Start) -> None:
    running = start(with_changes(Gone("mlx5_0", 0.4)), "--origin-in", "0.6")
    directory = os.open(running.root / DEVICES, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)

    before = names(directory)
    until(lambda: not (running.root / STATE).exists())
    after = names(directory)
    relative = outcome(lambda: os.open("mlx5_0/ports/1/state", os.O_RDONLY, dir_fd=directory))
    os.close(directory)

    assert before == ["mlx5_0", "mlx5_1"]
    assert after == ["mlx5_1"]
    assert relative == errno.ENOENT


def test_a_device_vanishes_again_and_again_with_the_same_name(start: Start) -> None:
    """A slow machine may miss one of its lives, but never sees one in a descriptor of another."""
    gone = [Gone("mlx5_0", 0.4 * n, 0.4 * n + 0.1) for n in range(1, 6)]
    running = start(with_changes(*gone), "--origin-in", "0.2")
    end_ns = running.truth.changes[-1].end_monotonic_ns
    assert end_ns is not None
    readers: list[Reader] = []

    def is_over() -> bool:
        return time.monotonic_ns() >= end_ns

    while not is_over():
        try:
            readers.append(Reader(running.root / STATE))
        except FileNotFoundError:
            continue
        until(lambda: readers[-1].is_gone() or is_over())
    # The last may have been opened in the last life, which goes on.
    assert all(reader.is_gone() for reader in readers[:-1])
    for reader in readers:
        reader.close()

    assert len(readers) >= 2
    assert (running.root / STATE).read_bytes() == ACTIVE


def test_a_garbled_counter_and_a_slow_one_reach_the_reader(start: Start) -> None:
    counters = f"{DEVICES}/mlx5_0/ports/1/counters"
    faults = (
        Fault(f"/{counters}/link_downed", "text"),
        Fault(f"/{counters}/symbol_error", "slow", delay_seconds=0.2),
    )
    running = start(replace(two_ports(), faults=faults))
    before_ns = time.monotonic_ns()

    slow = (running.root / counters / "symbol_error").read_text()

    assert slow == "0\n"
    assert time.monotonic_ns() - before_ns >= 200_000_000
    assert (running.root / counters / "link_downed").read_text() == "N/A (no PMA)\n"
