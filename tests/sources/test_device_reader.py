"""Real device readers in real lanes, on plain files beside a netlink that does as a test wants."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from flapd.core.fabric.catalogue import Tier
from flapd.model.observation import (
    READ_SLOW,
    READ_STATE,
    READ_STATISTICS,
    READ_WITNESS,
    Observation,
    Sample,
)
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.claims import Claims
from flapd.sources.device_reader import DeviceReader, Surroundings
from flapd.sources.lanes import Lanes
from flapd.sources.netdev_asker import NetdevAsker
from flapd.sources.netlink_codec import Message
from flapd.sources.port_rings import RingSettings
from flapd.sources.rdma_netlink import STAT_GET, RdmaNetlink
from flapd.sources.read_meter import ReadMeter
from flapd.sources.settings import PortsSettings
from flapd.store.ring import read_ring, ring_path
from tests.sources.made_up_rdma import GUID, MadeUpRdma
from tests.trees import lay_out

WITHIN_SECONDS = 20
KEY = f"{GUID}/1"
OTHER_GUID = "0002:c903:0000:0002"
HOUR_NS = 3600 * SECOND_NS
FAST_NS = 10 * MILLISECOND_NS


class HangingRdma(MadeUpRdma):
    """Does not come back from a question for counters until it may."""

    def __init__(self) -> None:
        super().__init__({"out_of_sequence": 5})
        self.hangs = False
        self.is_in = threading.Event()
        self.may_go_on = threading.Event()

    def ask(self, kind: int, payload: bytes = b"", *, dump: bool = False) -> list[Message]:
        if self.hangs and kind == STAT_GET:
            self.is_in.set()
            assert self.may_go_on.wait(WITHIN_SECONDS)
        return super().ask(kind, payload, dump=dump)


class NotedAsker:
    """Takes notes of what a reader tells an asker, and has statistics for it."""

    def __init__(self) -> None:
        self.noted: list[tuple[str, bool, bool]] = []
        self.statistics: dict[str, Any] = {}

    def follow(self, _device: str, _ports: object) -> None:
        pass

    def note(self, key: str, *, is_down: bool, is_counted_by: bool) -> bool:
        self.noted.append((key, is_down, is_counted_by))
        return True

    def take_statistics(self, key: str) -> Any:
        return self.statistics.pop(key, None)

    def source_of(self, _port: object) -> str:
        return "on"


class Fabric:
    """Two devices, the first with netlink, and what their readers told."""

    def __init__(self, root: Path, *, slow_ns: int = 20 * MILLISECOND_NS) -> None:
        self.kernel = HangingRdma()
        self.asker = NotedAsker()
        self.told: list[Observation] = []
        self.sysfs = root / "sys"
        for device, guid in (("mlx5_0", GUID), ("mlx5_1", OTHER_GUID)):
            lay_out(
                self.sysfs / "class/infiniband" / device,
                {
                    "node_guid": f"{guid}\n",
                    "ports/1/link_layer": "InfiniBand\n",
                    "ports/1/state": "4: ACTIVE\n",
                    "ports/1/phys_state": "5: LinkUp\n",
                    "ports/1/rate": "400 Gb/sec (4X NDR)\n",
                    "ports/1/counters/link_downed": "254\n",
                    "ports/1/hw_counters/out_of_sequence": "5\n",
                },
            )
        (root / "ring").mkdir()
        intervals_ns: dict[Tier, int] = {"fast": FAST_NS, "slow": slow_ns, "rare": HOUR_NS}
        self._changed = threading.Condition()
        self.around = Surroundings(
            sysfs=self.sysfs,
            rings=RingSettings(root / "ring", "boot1", SECOND_NS, intervals_ns, statistics=True),
            ports=PortsSettings(),
            intervals_ns=intervals_ns,
            claims=Claims(),
            tell=self._tell,
            meter=ReadMeter(),
            was_up={KEY, f"{OTHER_GUID}/1"},
            asker=cast("NetdevAsker", self.asker),
            open_netlink=lambda: RdmaNetlink(self.kernel),
        )
        self.readers = [DeviceReader(device, self.around) for device in ("mlx5_0", "mlx5_1")]

    def _tell(self, message: Observation, *, urgent: bool = True) -> bool:
        with self._changed:
            self.told.append(message)
            self._changed.notify_all()
        return True

    def write(self, name: str, content: str) -> None:
        (self.sysfs / "class/infiniband/mlx5_0/ports/1" / name).write_text(content)

    def settle(self) -> None:
        """Everything is read for the first time, which takes no hint."""
        with self._changed:
            for name in ("hw_counters/out_of_sequence", "rate_mbps"):
                assert self._changed.wait_for(partial(self._has_told, name), WITHIN_SECONDS)

    def _has_told(self, name: str) -> bool:
        samples = [it for it in self.told if isinstance(it, Sample)]
        return len({it.key for it in samples if name in it.values}) == len(self.readers)

    def next_sample(
        self, device: int, is_wanted: Callable[[Sample], bool], *, since_ns: int | None = None
    ) -> Sample:
        """The next that begins after then, by default after now.

        What follows from a change is told once, perhaps before who made it gets here.
        """
        key = (KEY, f"{OTHER_GUID}/1")[device]
        since_ns = time.monotonic_ns() if since_ns is None else since_ns
        found: list[Sample] = []

        def is_there() -> bool:
            found[:] = [
                it
                for it in self.told
                if isinstance(it, Sample) and it.key == key and it.before_ns > since_ns
                if is_wanted(it)
            ]
            return bool(found)

        with self._changed:
            assert self._changed.wait_for(is_there, WITHIN_SECONDS), self.told[-5:]
        return found[0]


@contextmanager
def in_lanes(fabric: Fabric) -> Iterator[Lanes]:
    lanes = Lanes(lambda: None)
    for reader in fabric.readers:
        lanes.add(reader)
    yield lanes
    fabric.kernel.may_go_on.set()
    for reader in fabric.readers:
        lanes.remove(reader)


@pytest.fixture
def fabric(tmp_path: Path) -> Fabric:
    return Fabric(tmp_path)


def test_netlink_that_hangs_holds_up_its_own_device_alone_as_a_file_would(fabric: Fabric) -> None:
    with in_lanes(fabric) as lanes:
        fabric.next_sample(0, lambda sample: True)
        fabric.kernel.hangs = True
        assert fabric.kernel.is_in.wait(WITHIN_SECONDS)
        while lanes._common.readers != []:
            lanes.look()

        fabric.next_sample(1, lambda sample: True)
        assert fabric.readers[0].reading_since_ns is not None
        fabric.kernel.hangs = False
        fabric.kernel.may_go_on.set()
        fabric.next_sample(0, lambda sample: bool(sample.reads & READ_STATE))


def test_a_device_tells_whether_netlink_tells_of_it(fabric: Fabric) -> None:
    with in_lanes(fabric):
        fabric.next_sample(0, lambda sample: True)
        fabric.next_sample(1, lambda sample: True)
        assert fabric.readers[0].netlink_source == "on"
        assert "ENODEV" in fabric.readers[1].netlink_source  # netlink knows mlx5_0 alone

        fabric.kernel.refuses.add(STAT_GET)
        fabric.next_sample(0, lambda sample: bool(fabric.readers[0]._ports))
        while fabric.readers[0].netlink_source == "on":
            fabric.next_sample(0, lambda sample: True)
        assert fabric.readers[0].netlink_source == "STAT_GET: EINVAL"


def test_without_netlink_a_device_says_why(fabric: Fabric) -> None:
    def refuses() -> RdmaNetlink:
        raise OSError(93, "Protocol not supported")

    fabric.around.open_netlink = refuses
    with in_lanes(fabric):
        fabric.next_sample(0, lambda sample: True)

    assert fabric.readers[0].netlink_source == "the kernel does not answer: EPROTONOSUPPORT"


def test_a_port_that_something_happened_to_is_read_with_its_state_without_waiting(
    tmp_path: Path,
) -> None:
    fabric = Fabric(tmp_path, slow_ns=HOUR_NS)
    with in_lanes(fabric) as lanes:
        fabric.settle()
        since_ns = time.monotonic_ns()
        fabric.write("state", "1: DOWN\n")
        fabric.kernel.state, fabric.kernel.physical_state = 1, 2

        assert fabric.readers[0].hurry(lambda port: port.key == KEY)
        assert not fabric.readers[1].hurry(lambda port: port.key == KEY)
        lanes.wake(fabric.readers[0])

        fabric.next_sample(0, lambda sample: sample.values.get("state") == 1, since_ns=since_ns)


def test_a_link_that_goes_down_and_a_counter_that_stops_are_noted_for_the_asker(
    fabric: Fabric,
) -> None:
    with in_lanes(fabric):
        since_ns = fabric.next_sample(0, lambda sample: True).before_ns
        fabric.kernel.state, fabric.kernel.physical_state = 1, 2
        fabric.next_sample(0, lambda sample: sample.values.get("state") == 1, since_ns=since_ns)
        since_ns = time.monotonic_ns()
        fabric.kernel.state, fabric.kernel.physical_state = 4, 5
        fabric.write("counters/link_downed", "255\n")
        fabric.next_sample(0, lambda sample: sample.values.get("state") == 4, since_ns=since_ns)
        fabric.next_sample(0, lambda sample: True)

    of_it = [noted[1:] for noted in fabric.asker.noted if noted[0] == KEY]
    assert of_it[0] == (True, False)
    assert of_it[-1] == (False, True)
    assert len(of_it) <= 4


def test_statistics_of_the_netdev_go_with_the_next_sample_and_say_so(fabric: Fabric) -> None:
    with in_lanes(fabric):
        since_ns = fabric.next_sample(0, lambda sample: True).before_ns
        fabric.asker.statistics[KEY] = {"ethtool/link_down_events_phy": 7}
        sample = fabric.next_sample(
            0, lambda sample: bool(sample.reads & READ_STATISTICS), since_ns=since_ns
        )
        assert sample.values["ethtool/link_down_events_phy"] == 7

        since_ns = time.monotonic_ns()
        fabric.asker.statistics[KEY] = "ENODEV"
        lost = fabric.next_sample(0, lambda sample: bool(sample.errors), since_ns=since_ns)
    assert lost.errors == {"ethtool/link_down_events_phy": "ENODEV"}
    assert not lost.reads & READ_STATISTICS


def test_quiet_fast_sweeps_are_told_and_remembered_in_their_order_with_the_slow_ones(
    tmp_path: Path,
) -> None:
    fabric = Fabric(tmp_path, slow_ns=10 * FAST_NS)
    with in_lanes(fabric):
        fabric.settle()
        for _ in range(3):
            fabric.next_sample(1, lambda sample: bool(sample.reads & READ_SLOW))

    key = f"{OTHER_GUID}/1"
    told = [it for it in fabric.told if isinstance(it, Sample) and it.key == key]
    quiet = [(it.before_ns, it.after_ns) for it in told if it.reads == READ_WITNESS]
    remembered = read_ring(ring_path(tmp_path / "ring", key, "fast")).rows()
    assert len(quiet) > 5
    assert [it.before_ns for it in told] == sorted(it.before_ns for it in told)
    assert {*quiet} <= {(row.before_ns, row.after_ns) for row in remembered}
