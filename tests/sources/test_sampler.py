"""The real sampler process on a small tree of plain files that changes under it."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from flapd.model.duration import parse_duration
from flapd.model.observation import KernelHint, KernelLine, PortSeen, PortsPresent, Sample
from flapd.sources.sampler_link import (
    Orders,
    ReadNow,
    SourcesHeard,
    Told,
    WatchClosely,
    make_link,
    receive,
    send,
)
from flapd.sources.settings import OFF, PortsSettings, SamplingSettings, SourcesSettings
from flapd.store.ring import read_ring, ring_files
from tests.trees import lay_out

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent.parent
PATIENCE_SECONDS = 20.0

T = TypeVar("T", bound=Told)


def device(root: Path, name: str, guid: str) -> Path:
    directory = root / "sys/class/infiniband" / name
    lay_out(
        directory,
        {
            "node_guid": f"{guid}\n",
            "ports/1/link_layer": "InfiniBand\n",
            "ports/1/state": "4: ACTIVE\n",
            "ports/1/phys_state": "5: LinkUp\n",
            "ports/1/rate": "400 Gb/sec (4X NDR)\n",
            "ports/1/counters/link_downed": "3\n",
        },
    )
    return directory


class Running:
    """A sampler, and what it has told."""

    def __init__(
        self,
        root: Path,
        ports: PortsSettings,
        fast: str = "20ms",
        slow: str = "500ms",
        **more: Any,
    ) -> None:
        """`more` goes into its orders."""
        self.root = root
        self.told: list[Told] = []
        self.link, theirs = make_link()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flapd.sources.sampler", "--link", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
        )
        theirs.close()
        sampling = SamplingSettings(
            interval=parse_duration(fast), slow_interval=parse_duration(slow)
        )
        ring = root / "ring"
        ring.mkdir(exist_ok=True)
        orders = Orders(str(root / "sys"), str(ring), "boot1", sampling, ports, **more)
        send(self.link, orders)

    def next(self, kind: type[T], condition: Callable[[T], bool] = lambda _told: True) -> T:
        """The next of its kind that is as wanted; what came before it is dropped."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            while self.told:
                told = self.told.pop(0)
                if isinstance(told, kind) and condition(told):
                    return told
            self.told += receive(self.link, PATIENCE_SECONDS)
        raise AssertionError(f"no such {kind.__name__} came")

    def told_until(self, *conditions: Callable[[Told], bool]) -> list[Told]:
        """All that it tells until each of these has come."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(any(map(condition, self.told)) for condition in conditions):
            assert time.monotonic() < deadline, "not all of it came"
            self.told += receive(self.link, PATIENCE_SECONDS)
        return self.told

    def end(self) -> int:
        self.link.close()
        return self.process.wait(PATIENCE_SECONDS)


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Running] = []

    def begin(ports: PortsSettings | None = None, **more: Any) -> Running:
        running.append(Running(tmp_path, ports or PortsSettings(), **more))
        return running[-1]

    yield begin
    for each in running:
        each.process.kill()
        each.process.wait()
        each.link.close()


def test_ports_are_told_then_read_and_remembered(start: Start, tmp_path: Path) -> None:
    device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    sampler = start()

    assert sampler.next(PortSeen).port.key == "0002:c903:0000:0001/1"
    first = sampler.next(Sample)
    assert first.first
    assert first.values["counters/link_downed"] == 3
    assert sampler.next(PortsPresent).keys == ("0002:c903:0000:0001/1",)
    later = sampler.next(Sample, lambda sample: not sample.first)

    rings = [read_ring(path) for path in ring_files(tmp_path / "ring")]
    fast = next(ring for ring in rings if ring.tier == "fast")
    assert (first.before_ns, first.after_ns) == next(
        (row.before_ns, row.after_ns) for row in fast.rows()
    )
    assert later.before_ns > first.after_ns


def test_a_node_without_devices_says_that_it_has_none(start: Start, tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)

    assert start().next(PortsPresent).keys == ()


def test_a_renamed_device_is_the_same_port_and_was_never_gone(start: Start, tmp_path: Path) -> None:
    directory = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    sampler = start()
    sampler.next(PortsPresent)

    directory.rename(directory.with_name("ibp59s0"))
    renamed = sampler.next(PortSeen)
    (directory.with_name("ibp59s0") / "ports/1/counters/link_downed").write_text("4\n")
    sample = sampler.next(Sample, lambda sample: "counters/link_downed" in sample.values)

    assert (renamed.port.key, renamed.port.name) == ("0002:c903:0000:0001/1", "ibp59s0/1")
    assert sample.key == renamed.port.key


def test_swapped_names_keep_their_ports(start: Start, tmp_path: Path) -> None:
    one = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    two = device(tmp_path, "mlx5_1", "0002:c903:0000:0002")
    sampler = start()
    sampler.next(PortsPresent)

    one.rename(tmp_path / "aside")
    two.rename(one)
    (tmp_path / "aside").rename(two)

    seen: dict[str, str] = {}
    while len(seen) < 2:
        port = sampler.next(PortSeen).port
        seen[port.device] = port.key
    assert seen == {"mlx5_0": "0002:c903:0000:0002/1", "mlx5_1": "0002:c903:0000:0001/1"}


def test_a_removed_device_is_told_and_may_come_back(start: Start, tmp_path: Path) -> None:
    one = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    device(tmp_path, "mlx5_1", "0002:c903:0000:0002")
    sampler = start()
    assert len(sampler.next(PortsPresent).keys) == 2

    one.rename(tmp_path / "aside")
    assert sampler.next(PortsPresent).keys == ("0002:c903:0000:0002/1",)
    (tmp_path / "aside").rename(one)
    assert sampler.next(PortSeen).port.key == "0002:c903:0000:0001/1"
    assert len(sampler.next(PortsPresent).keys) == 2


def test_two_devices_that_say_the_same_of_themselves_are_two_ports(
    start: Start, tmp_path: Path
) -> None:
    for name in ("rxe0", "rxe1"):
        device(tmp_path, name, "0002:c903:0000:0001")

    own = ("0002:c903:0000:0001@rxe0/1", "0002:c903:0000:0001@rxe1/1")

    assert start().next(PortsPresent, lambda present: present.keys == own)


def test_odd_names_and_absurd_numbers_stop_no_port(start: Start, tmp_path: Path) -> None:
    directory = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    device(tmp_path, "a\nb", "0002:c903:0000:0002")
    for name in ("²", "9" * 40, "-1", "1.5"):
        (directory / "ports" / name).mkdir()
    (directory / "ports/1/hw_counters").mkdir()
    for number in range(600):
        (directory / "ports/1/hw_counters" / f"{number:x}{'n' * 200}").write_text("x")
        (directory / f"ports/1/hw_counters/broken_{number}").write_text("9" * 30)
    (directory / "ports/1/counters/symbol_error").write_text("99999999999999999999\n")

    sampler = start()

    assert sampler.next(PortSeen).port.number == 1
    slow = sampler.next(Sample, lambda sample: "counters/symbol_error" in sample.errors)
    assert slow.errors["counters/symbol_error"].startswith("more than 16 bits")
    assert sampler.next(PortsPresent).keys == ("0002:c903:0000:0001/1",)


def test_a_port_to_be_watched_closely_has_its_state_in_every_sweep(
    start: Start, tmp_path: Path
) -> None:
    directory = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    sampler = start(PortsSettings())
    key = sampler.next(PortSeen).port.key

    send(sampler.link, WatchClosely(frozenset({key})))
    (directory / "ports/1/state").write_text("1: DOWN\n")

    assert sampler.next(Sample, lambda sample: sample.values.get("state") == 1)


def silent_but(*heard: str) -> dict[str, str]:
    return {name: OFF for name in SourcesSettings.__struct_fields__ if name not in heard}


RARELY = {"fast": "1h", "slow": "1h", "known_up": frozenset({"0002:c903:0000:0001/1"})}
"""Only what is asked for is read after the first time."""


def settled(sampler: Running) -> None:
    """All that is read first was told."""
    sampler.next(Sample, lambda sample: sample.values.get("state") == 4)
    sampler.next(Sample, lambda sample: "rate_mbps" in sample.values)


def test_a_port_that_the_agent_asks_for_is_read_at_once_with_its_state(
    start: Start, tmp_path: Path
) -> None:
    directory = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    sampler = start(**RARELY)
    settled(sampler)
    (directory / "ports/1/state").write_text("1: DOWN\n")

    send(sampler.link, ReadNow(frozenset({"0002:c903:0000:0001/1", "nobody/1"})))

    assert sampler.next(Sample, lambda sample: sample.values.get("state") == 1)


def test_what_the_kernel_prints_of_a_port_is_told_and_has_it_read_at_once(
    start: Start, tmp_path: Path
) -> None:
    directory = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    (tmp_path / "dev").mkdir()
    reading, kernel = os.pipe2(os.O_DIRECT)  # gives a record a read, as /dev/kmsg does
    (tmp_path / "dev/kmsg").symlink_to(f"/proc/{os.getpid()}/fd/{reading}")
    sampler = start(silent=silent_but("kernel_log"), dev=str(tmp_path / "dev"), **RARELY)
    settled(sampler)
    (directory / "ports/1/state").write_text("1: DOWN\n")

    for text in ("infiniband mlx5_7: set down", "infiniband mlx5_0: set down"):
        os.write(kernel, f"6,1,100,-;{text}\n".encode())

    told = sampler.told_until(  # in whichever order
        lambda told: isinstance(told, KernelHint),
        lambda told: isinstance(told, Sample) and told.values.get("state") == 1,
    )
    (hint,) = [it for it in told if isinstance(it, KernelHint)]
    assert hint.line == KernelLine("link_down", None, device="mlx5_0")
    assert hint.logged_ns <= hint.received_ns
    os.close(kernel)
    os.close(reading)


def test_a_kernel_log_that_cannot_be_read_is_said_and_reading_goes_on(
    start: Start, tmp_path: Path
) -> None:
    device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    sampler = start(silent=silent_but("kernel_log"), dev=str(tmp_path / "nowhere"))

    heard = sampler.next(SourcesHeard, lambda heard: "mlx5_0" in heard.by_device)

    assert heard.by_device["mlx5_0"]["kernel_log"] == "No such file or directory"
    assert sampler.next(Sample, lambda sample: not sample.first)


def test_with_all_sources_on_a_copy_of_sysfs_is_read_by_its_files_alone(
    start: Start, tmp_path: Path
) -> None:
    """As if nobody had found out before that the kernel speaks of other devices."""
    directory = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    lay_out(
        directory,
        {
            "ports/1/link_layer": "Ethernet\n",
            "ports/1/gid_attrs/ndevs/0": "lo\n",
            "ports/1/hw_counters/out_of_sequence": "5\n",
        },
    )
    lay_out(tmp_path / "sys/class/net/lo", {"ifindex": "99\n", "address": "02:00:00:00:00:01\n"})
    sampler = start(silent={}, dev=str(tmp_path / "nowhere"))

    first = sampler.next(Sample, lambda sample: "hw_counters/out_of_sequence" in sample.values)
    heard = sampler.next(
        SourcesHeard,
        lambda heard: "another lo" in heard.by_device.get("mlx5_0", {}).get("ethtool", ""),
    )

    sources = heard.by_device["mlx5_0"]
    assert first.values["hw_counters/out_of_sequence"] == 5
    assert "on" not in sources.values()
    assert sources.keys() == {"rdma_netlink", "verbs", "ethtool", "kernel_log", "module"}


def test_an_excluded_port_is_not_there(start: Start, tmp_path: Path) -> None:
    device(tmp_path, "mlx5_0", "0002:c903:0000:0001")

    assert start(PortsSettings(exclude=("mlx5_0/*",))).next(PortsPresent).keys == ()


def test_it_ends_with_its_agent(start: Start, tmp_path: Path) -> None:
    device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    sampler = start()
    sampler.next(PortsPresent)

    assert sampler.end() == 0


def test_it_keeps_sampling_while_nobody_listens(start: Start, tmp_path: Path) -> None:
    """The ring has every sample, whatever became of the messages."""
    directory = device(tmp_path, "mlx5_0", "0002:c903:0000:0001")
    sampler = start()
    sampler.next(PortsPresent)
    (ring,) = [path for path in ring_files(tmp_path / "ring") if read_ring(path).tier == "fast"]
    data = directory / "ports/1/counters/link_downed"
    for value in range(4, 40):
        data.write_text(f"{value}\n")
        while not any(
            row.values.get("counters/link_downed") == value for row in read_ring(ring).rows()
        ):
            pass

    last = sampler.next(Sample, lambda sample: sample.values.get("counters/link_downed") == 39)

    assert last.before_ns <= last.after_ns
