import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import Snapshot
from flapd.model.times import SECOND_NS
from flapd.pump import Pump
from flapd.service import ServiceManager, status_line
from flapd.store.history import History
from flapd.store.recorder import Recorder
from tests.serve.parts import port, view
from tests.systemd.notified import Notified

WATCHDOG_SECONDS = 3
WATCHDOG_USEC = str(WATCHDOG_SECONDS * 1_000_000)


class Clock:
    def __init__(self) -> None:
        self.ns = 100 * SECOND_NS

    def __call__(self) -> int:
        return self.ns


@pytest.fixture(params=["path", "abstract"])
def notified(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Notified]:
    abstract = f"@flapd-test-{os.getpid()}"
    notified = Notified(abstract if request.param == "abstract" else str(tmp_path / "notify"))
    yield notified
    notified.close()


def manager_of(notified: Notified, clock: Clock | None = None, **more: str) -> ServiceManager:
    environment = {"NOTIFY_SOCKET": notified.address, **more}
    return ServiceManager(environment, clock or Clock())


def test_each_thing_is_told_in_one_datagram(notified: Notified) -> None:
    manager = manager_of(notified)
    manager.starting(within_seconds=200)
    manager.ready()
    manager.reloading()
    manager.stopping()

    assert notified.waiting() == [
        "EXTEND_TIMEOUT_USEC=200000000",
        "READY=1",
        "RELOADING=1\nMONOTONIC_USEC=100000000",
        "STOPPING=1",
    ]


def test_a_status_is_told_when_it_changes(notified: Notified) -> None:
    manager = manager_of(notified)
    for line in ("8 ports", "8 ports", "7 ports"):
        manager.tell_status(line)

    assert notified.waiting() == ["STATUS=8 ports", "STATUS=7 ports"]


def test_the_watchdog_is_fed_three_times_in_its_time(notified: Notified) -> None:
    clock = Clock()
    manager = manager_of(notified, clock, WATCHDOG_USEC=WATCHDOG_USEC)
    for _ in range(30):
        manager.feed_watchdog(clock.ns)
        clock.ns += WATCHDOG_SECONDS * SECOND_NS // 30

    assert notified.waiting() == ["WATCHDOG=1"] * 3


def test_it_starves_while_the_engine_stands_still_and_is_fed_when_that_goes_on(
    notified: Notified,
) -> None:
    clock = Clock()
    manager = manager_of(notified, clock, WATCHDOG_USEC=WATCHDOG_USEC)
    stopped_ns = clock.ns
    clock.ns += WATCHDOG_SECONDS * SECOND_NS // 2
    for _ in range(30):
        clock.ns += WATCHDOG_SECONDS * SECOND_NS // 10
        manager.feed_watchdog(stopped_ns)
    assert notified.waiting() == []

    manager.feed_watchdog(clock.ns)
    assert notified.waiting() == ["WATCHDOG=1"]


@pytest.mark.parametrize(
    "environment",
    [
        {},
        {"WATCHDOG_USEC": "0"},
        {"WATCHDOG_USEC": "soon"},
        {"WATCHDOG_USEC": WATCHDOG_USEC, "WATCHDOG_PID": "1"},
    ],
)
def test_a_watchdog_that_does_not_wait_for_us_is_not_fed(
    notified: Notified, environment: dict[str, str]
) -> None:
    clock = Clock()
    manager_of(notified, clock, **environment).feed_watchdog(clock.ns)

    assert notified.waiting() == []


@pytest.mark.parametrize("address", ["", "vsock:2:1234", "/nowhere/notify"])
def test_nobody_who_listens_is_no_trouble(address: str) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": address, "WATCHDOG_USEC": WATCHDOG_USEC})
    manager.ready()
    manager.feed_watchdog(0)
    manager.stopping()


def test_what_a_manager_did_not_hear_is_told_again(tmp_path: Path) -> None:
    manager = ServiceManager({"NOTIFY_SOCKET": str(tmp_path / "notify")})
    manager.tell_status("8 ports")
    notified = Notified(str(tmp_path / "notify"))
    manager.tell_status("8 ports")

    assert notified.waiting() == ["STATUS=8 ports"]
    notified.close()


def test_an_engine_that_is_held_up_starves_the_watchdog(tmp_path: Path, notified: Notified) -> None:
    history = History(tmp_path / "history.sqlite")
    engine = Engine("node7", FlapSettings(), history.checkpoint())
    pump = Pump(engine, history, Recorder(tmp_path, "node7", "0.1.0"), "boot1")
    manager = ServiceManager({"NOTIFY_SOCKET": notified.address, "WATCHDOG_USEC": "200000"})
    pump.start()
    held_up, go_on = threading.Event(), threading.Event()

    def hold_up() -> None:
        held_up.set()
        go_on.wait()

    pump.call(hold_up)
    assert held_up.wait(10)
    while time.monotonic_ns() - pump.turned_ns < SECOND_NS // 5:
        manager.feed_watchdog(pump.turned_ns)
    notified.waiting()
    manager.feed_watchdog(pump.turned_ns)
    assert notified.waiting() == []

    go_on.set()
    pump.call(lambda: None).result(10)
    while not notified.waiting():
        manager.feed_watchdog(pump.turned_ns)
    assert pump.stop(10)


def test_the_status_names_what_is_watched_and_what_is_wrong() -> None:
    ports = [port(device=f"mlx5_{number}", key=f"{number}/1") for number in range(9)]
    fine = [view(one) for one in ports]
    wrong = Snapshot(
        ports=(
            fine[0],
            view(ports[1], up=False),
            view(ports[2], up=None, readable=False),
            view(ports[3], watched=False, up=False),
            view(ports[4], flapping=True),
            view(ports[5], present=False),
        ),
        stuck_readers={"mlx5_2": 5},
    )

    assert status_line(Snapshot(), ["it is not known yet which ports there are"]) == (
        "0 of 0 ports watched; it is not known yet which ports there are"
    )
    assert status_line(Snapshot(ports=tuple(fine)), []) == "9 of 9 ports watched"
    assert status_line(wrong, ["the history cannot be written"]) == (
        "4 of 5 ports watched; down: mlx5_1/1; flapping: mlx5_4/1; cannot be read: mlx5_2/1; "
        "reader hangs: mlx5_2; the history cannot be written"
    )
    all_down = Snapshot(ports=tuple(view(one, up=False) for one in ports))
    assert status_line(all_down, []).endswith("mlx5_3/1 and 5 more")
