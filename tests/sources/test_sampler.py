"""The real sampler process on a small tree of plain files that changes under it."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from flapd.model.duration import parse_duration
from flapd.model.observation import PortSeen, PortsPresent, Sample
from flapd.sources.sampler_link import Orders, Told, WatchClosely, make_link, receive, send
from flapd.sources.settings import PortsSettings, SamplingSettings
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

    def __init__(self, root: Path, ports: PortsSettings) -> None:
        self.root = root
        self.told: list[Told] = []
        self.link, theirs = make_link()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flapd.sources.sampler", "--link", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            cwd=ROOT,
        )
        theirs.close()
        sampling = SamplingSettings(interval=parse_duration("20ms"))
        ring = root / "ring"
        ring.mkdir(exist_ok=True)
        send(self.link, Orders(str(root / "sys"), str(ring), "boot1", sampling, ports))

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

    def end(self) -> int:
        self.link.close()
        return self.process.wait(PATIENCE_SECONDS)


Start = Callable[..., Running]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    running: list[Running] = []

    def begin(ports: PortsSettings | None = None) -> Running:
        running.append(Running(tmp_path, ports or PortsSettings()))
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
