"""Made-up drivers that answer, refuse, hang and fail as the test wants it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EIO, EOPNOTSUPP, EPERM
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.model.observation import LinkReason, ModuleSeen
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.ethtool_netlink import EthtoolNetlink, LinkState
from flapd.sources.ethtool_statistics import EthtoolStatistics
from flapd.sources.netdev_asker import NO_NETDEV, NetdevAsker
from tests.sources.namespace import in_namespace
from tests.trees import lay_out

WITHIN_SECONDS = 20
ADDRESS = "02:00:00:00:00:01"
PORT = Port("a/1", "mlx5_0", 1, "Ethernet", netdev="eth2")
OTHER = Port("b/1", "mlx5_1", 1, "InfiniBand", netdev="ib1")
UP = LinkState(is_up=True, reason=None, downs=None)
NO_CABLE = LinkState(is_up=False, reason="no cable", downs=None)
MODULE = ModuleIdentity("Mellanox", "MCP1650", "MT1")


class Drivers:
    """Stands for the kernel's ethtool, by netlink and by ioctl."""

    def __init__(self, sysfs: Path) -> None:
        for number, port in enumerate((PORT, OTHER), 5):
            files = {"ifindex": f"{number}\n", "address": f"{ADDRESS}\n"}
            lay_out(sysfs / "class/net" / str(port.netdev), files)
        self.sysfs = sysfs
        self.told: list[LinkReason | ModuleSeen] = []
        self.asked: list[tuple[str, str]] = []
        self.link: LinkState | OSError | Exception = UP
        self.counted: dict[str, int] | OSError = {"ethtool/link_down_events_phy": 3}
        self.modules: ModuleIdentity | OSError | None = MODULE
        self.identity = {"eth2": (5, ADDRESS), "ib1": (6, ADDRESS)}
        self.has_room = True
        self.answers = threading.Event()
        self.answers.set()
        self.hanging: set[str] = set()
        self._changed = threading.Condition()

    def link_state(self, netdev: str) -> LinkState:
        return cast("LinkState", self._answer(netdev, "reason", self.link))

    def module(self, netdev: str) -> ModuleIdentity | None:
        return cast("ModuleIdentity | None", self._answer(netdev, "module", self.modules))

    def read(self, netdev: str) -> dict[str, int]:
        return cast("dict[str, int]", self._answer(netdev, "statistics", self.counted))

    def _answer(self, netdev: str, what: str, answer: Any) -> Any:
        with self._changed:
            self.asked.append((netdev, what))
            self._changed.notify_all()
        if netdev in self.hanging:
            assert self.answers.wait(WITHIN_SECONDS)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def close(self) -> None:
        pass

    def tell(self, message: LinkReason | ModuleSeen) -> bool:
        with self._changed:
            if self.has_room:
                self.told.append(message)
            self._changed.notify_all()
        return self.has_room

    def wait_for(self, is_so: Callable[[], Any]) -> None:
        with self._changed:
            assert self._changed.wait_for(is_so, WITHIN_SECONDS), (self.asked, self.told)

    def was_asked(self, netdev: str, what: str, times: int = 1) -> bool:
        return self.asked.count((netdev, what)) >= times


class OfOne:
    """The statistics of one netdev."""

    def __init__(self, drivers: Drivers, netdev: str) -> None:
        self._drivers = drivers
        self._netdev = netdev

    def read(self) -> dict[str, int]:
        return self._drivers.read(self._netdev)

    def close(self) -> None:
        pass


@pytest.fixture
def drivers(tmp_path: Path) -> Drivers:
    return Drivers(tmp_path)


@contextmanager
def asking(
    drivers: Drivers, *ports: Port, may_ask: Callable[[str], bool] = lambda _device: True
) -> Iterator[NetdevAsker]:
    asker = NetdevAsker(
        drivers.sysfs,
        30 * SECOND_NS,
        drivers.tell,
        may_ask,
        open_ethtool=lambda: cast("EthtoolNetlink", drivers),
        open_statistics=lambda netdev: cast("EthtoolStatistics", OfOne(drivers, netdev)),
        kernels=drivers.identity.__getitem__,
    )
    for port in ports:
        asker.follow(port.device, {port.key: port})
    asker.start()
    yield asker
    drivers.answers.set()


def taken(drivers: Drivers, asker: NetdevAsker, key: str) -> Any:
    """What was told of its statistics once something was."""
    told: list[Any] = []

    def is_there() -> bool:
        told.append(asker.take_statistics(key))
        return told[-1] is not None

    drivers.wait_for(lambda: drivers.was_asked("eth2", "module"))  # which comes after
    assert is_there()
    assert asker.take_statistics(key) is None
    return told[-1]


def test_a_port_that_is_fine_has_its_statistics_and_module_told_and_no_reason_asked(
    drivers: Drivers,
) -> None:
    with asking(drivers, PORT) as asker:
        assert taken(drivers, asker, "a/1") == {"ethtool/link_down_events_phy": 3}
        drivers.wait_for(lambda: drivers.told)
        assert asker.source_of(PORT) == "on"

    (seen,) = drivers.told
    assert isinstance(seen, ModuleSeen)
    assert (seen.key, seen.vendor, seen.part, seen.serial) == ("a/1", "Mellanox", "MCP1650", "MT1")
    assert not drivers.was_asked("eth2", "reason")


def test_why_a_link_is_down_is_asked_when_it_goes_down_and_again_while_it_is(
    drivers: Drivers,
) -> None:
    drivers.modules = None
    with asking(drivers, PORT) as asker:
        drivers.wait_for(lambda: drivers.was_asked("eth2", "module"))
        drivers.link = LinkState(is_up=False, reason=None, downs=None)
        assert asker.note("a/1", is_down=True, is_counted_by=False)
        drivers.wait_for(lambda: drivers.was_asked("eth2", "reason"))
        drivers.link = NO_CABLE
        drivers.wait_for(lambda: drivers.told)
        drivers.wait_for(lambda: drivers.was_asked("eth2", "reason", 3))

    (told,) = drivers.told
    assert isinstance(told, LinkReason)
    assert (told.key, told.reason, told.source) == ("a/1", "no cable", "ethtool")
    assert 0 < told.before_ns <= told.after_ns


def test_a_flap_that_is_over_is_asked_about_once_each(drivers: Drivers) -> None:
    """What is asked every second tells how time goes."""
    with asking(drivers, PORT) as asker:
        for times in (1, 2):
            asker.note("a/1", is_down=False, is_counted_by=True)
            drivers.wait_for(partial(drivers.was_asked, "eth2", "reason", times))
        asked = drivers.asked.count(("eth2", "statistics"))
        drivers.wait_for(lambda: drivers.was_asked("eth2", "statistics", asked + 3))

        assert drivers.asked.count(("eth2", "reason")) == 2
    assert not any(isinstance(told, LinkReason) for told in drivers.told)


def test_after_a_link_came_back_its_module_is_looked_at_again(drivers: Drivers) -> None:
    with asking(drivers, PORT) as asker:
        drivers.wait_for(lambda: drivers.told)
        asker.note("a/1", is_down=True, is_counted_by=False)
        drivers.wait_for(lambda: drivers.was_asked("eth2", "reason"))
        drivers.modules = ModuleIdentity("Other", "P", "S")
        asker.note("a/1", is_down=False, is_counted_by=False)
        drivers.wait_for(lambda: len(drivers.told) == 2)

    assert [told.serial for told in drivers.told if isinstance(told, ModuleSeen)] == ["MT1", "S"]


def test_a_port_that_must_be_counted_by_them_has_its_statistics_asked_every_second(
    drivers: Drivers,
) -> None:
    with asking(drivers, PORT) as asker:
        asker.note("a/1", is_down=False, is_counted_by=True)

        drivers.wait_for(lambda: drivers.was_asked("eth2", "statistics", 3))


def test_statistics_that_were_long_in_coming_are_not_taken_for_those_of_now(
    drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flapd.sources.netdev_asker.TOO_OLD_NS", 0)
    with asking(drivers, PORT) as asker:
        drivers.wait_for(lambda: drivers.was_asked("eth2", "module"))

        assert asker.take_statistics("a/1") is None


def test_what_could_not_be_told_is_told_later(drivers: Drivers) -> None:
    drivers.has_room = False
    drivers.link = NO_CABLE
    with asking(drivers, PORT) as asker:
        drivers.wait_for(lambda: drivers.was_asked("eth2", "module"))
        asker.note("a/1", is_down=True, is_counted_by=False)
        drivers.wait_for(lambda: drivers.was_asked("eth2", "reason"))
        drivers.has_room = True
        drivers.wait_for(lambda: drivers.told)


@pytest.mark.parametrize("errno", [EOPNOTSUPP, EIO])
def test_what_a_driver_refuses_is_the_reason_and_the_values_are_lost(
    drivers: Drivers, errno: int
) -> None:
    drivers.counted = OSError(errno, "refused")
    drivers.modules = OSError(EPERM, "not allowed")
    name = {EOPNOTSUPP: "ENOTSUP", EIO: "EIO"}[errno]
    with asking(drivers, PORT) as asker:
        assert taken(drivers, asker, "a/1") == name
        drivers.wait_for(lambda: "module" in asker._asked["a/1"].refused)

        assert asker.source_of(PORT) == f"module: EPERM, statistics: {name}"
        assert asker.module_of(PORT) == "EPERM"


def test_of_a_netdev_of_the_same_name_elsewhere_nothing_is_asked(drivers: Drivers) -> None:
    drivers.identity["eth2"] = (5, "02:00:00:00:00:99")
    drivers.identity["ib1"] = (7, ADDRESS)
    with asking(drivers, PORT, OTHER) as asker:
        drivers.wait_for(lambda: len(asker._asked["b/1"].refused) == 2)

        assert "the kernel knows another eth2 here" in asker.source_of(PORT)
    assert drivers.asked == []


def test_a_driver_that_hangs_keeps_nobody_waiting_but_this_and_says_so(
    drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flapd.sources.netdev_asker.WAITED_FOR_NS", 0)
    drivers.answers.clear()
    drivers.hanging.add("eth2")
    with asking(drivers, PORT, OTHER) as asker:
        drivers.wait_for(lambda: drivers.was_asked("eth2", "statistics"))

        assert asker.note("a/1", is_down=True, is_counted_by=False)
        asker.follow("mlx5_1", {})
        assert asker.take_statistics("a/1") is None
        assert "does not answer for eth2" in asker.source_of(OTHER)
        drivers.answers.set()
        drivers.wait_for(lambda: drivers.was_asked("eth2", "reason"))


def test_a_device_that_does_not_answer_is_not_asked(drivers: Drivers) -> None:
    with asking(drivers, PORT, OTHER, may_ask=lambda device: device == "mlx5_1"):
        drivers.wait_for(lambda: drivers.was_asked("ib1", "module"))

    assert not any(netdev == "eth2" for netdev, _ in drivers.asked)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_fault_of_ours_ends_only_the_asking(drivers: Drivers) -> None:
    drivers.link = ZeroDivisionError("a fault")
    with asking(drivers, PORT) as asker:
        drivers.wait_for(lambda: drivers.was_asked("eth2", "module"))
        asker.note("a/1", is_down=True, is_counted_by=False)
        asker._thread.join(WITHIN_SECONDS)

        assert asker.source_of(PORT) == "it failed: ZeroDivisionError('a fault')"
        assert asker.note("a/1", is_down=False, is_counted_by=False)


def test_a_port_without_a_netdev_says_so(drivers: Drivers) -> None:
    with asking(drivers) as asker:
        assert asker.source_of(Port("c/1", "mlx5_2", 1, "InfiniBand")) == NO_NETDEV
        assert not asker.note("c/1", is_down=True, is_counted_by=False)


def test_of_a_real_veth_the_asker_tells_what_there_is() -> None:
    told = in_namespace("asked_netdev")

    assert told == {
        "source": "module: ENOTSUP, statistics: ENOTSUP",
        "taken": "ENOTSUP",
        "after_down": "on",
        "of_a_copy": "the kernel knows another v0 here",
    }
