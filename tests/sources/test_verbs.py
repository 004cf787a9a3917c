"""A pipe stands for the events of a device, which only a device has; tests of a real one run in a
virtual machine."""

import os
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import ENODEV
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.verbs import VerbsEvents, VerbsHint, hint_of
from flapd.sources.verbs_device import HeldDevice, descriptors, held_by

WITHIN_SECONDS = 20


def record(element: int, kind: int) -> bytes:
    return struct.pack("=QII", element, kind, 0)


class Devices:
    """Devices that can be opened, each with a node and a pipe for its events."""

    def __init__(self, sysfs: Path) -> None:
        self.nodes = sysfs / "class/infiniband_verbs"
        self.nodes.mkdir(parents=True)
        self.told: list[VerbsHint] = []
        self.pipes: dict[str, int] = {}
        self.closed: list[str] = []
        self._changed = threading.Condition()
        self.events = VerbsEvents(sysfs, self._tell, self._open, again_after_seconds=0.01)

    def add(self, device: str) -> None:
        (self.nodes / f"uverbs_{device}").touch()

    def remove(self, device: str) -> None:
        (self.nodes / f"uverbs_{device}").unlink()

    def tell(self, device: str, *records: bytes) -> None:
        os.write(self.pipes[device], b"".join(records))

    def wait_for(self, is_so: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(is_so, WITHIN_SECONDS)

    def _tell(self, hint: VerbsHint) -> None:
        with self._changed:
            self.told.append(hint)
            self._changed.notify_all()

    def _open(self, device: str) -> HeldDevice:
        node = f"uverbs_{device}"
        if not (self.nodes / node).exists():
            raise OSError(ENODEV, "there is none")
        reading, writing = os.pipe()
        os.set_blocking(reading, False)

        def close() -> None:
            with self._changed:
                os.close(reading)
                os.close(writing)
                del self.pipes[device]
                self.closed.append(device)
                self._changed.notify_all()

        with self._changed:
            self.pipes[device] = writing
            self._changed.notify_all()
        return HeldDevice(device, node, reading, close)


@contextmanager
def devices(root: Path, *present: str) -> Iterator[Devices]:
    those = Devices(root)
    for device in present:
        those.add(device)
    those.events.start()
    try:
        yield those
    finally:
        assert those.events.stop(WITHIN_SECONDS)


def test_each_event_of_a_port_is_told_with_its_device_and_port(tmp_path: Path) -> None:
    with devices(tmp_path, "mlx5_0", "mlx5_1") as those:
        those.events.hold({"mlx5_0": True, "mlx5_1": True})
        those.wait_for(lambda: len(those.pipes) == 2)
        those.tell("mlx5_0", record(1, 10), record(1, 9))
        those.tell("mlx5_1", record(2, 11))
        those.wait_for(lambda: len(those.told) == 3)

    told = {(hint.device, hint.port, hint.event) for hint in those.told}
    assert told == {
        ("mlx5_0", 1, "port_error"),
        ("mlx5_0", 1, "port_active"),
        ("mlx5_1", 2, "lid_change"),
    }
    assert sorted(those.closed) == ["mlx5_0", "mlx5_1"]


def test_a_device_that_tells_its_end_is_let_go_at_once(tmp_path: Path) -> None:
    with devices(tmp_path, "mlx5_0") as those:
        those.events.hold({"mlx5_0": True})
        those.wait_for(lambda: "mlx5_0" in those.pipes)
        those.tell("mlx5_0", record(0, 8), record(1, 10))
        those.wait_for(lambda: those.closed == ["mlx5_0"])

    assert [(hint.port, hint.event) for hint in those.told] == [(None, "device_fatal")]


def test_a_device_whose_driver_tells_nothing_is_let_go_once_its_node_is_gone(
    tmp_path: Path,
) -> None:
    with devices(tmp_path, "rxe0") as those:
        those.events.hold({"rxe0": False})
        those.wait_for(lambda: "rxe0" in those.pipes)
        those.remove("rxe0")
        those.wait_for(lambda: those.closed == ["rxe0"])
        those.add("rxe0")
        those.wait_for(lambda: "rxe0" in those.pipes)


def test_a_device_that_cannot_be_opened_is_tried_again_and_says_why(tmp_path: Path) -> None:
    with devices(tmp_path) as those:
        those.events.hold({"mlx5_0": True})
        until = threading.Event()
        while "mlx5_0" not in those.events.refused:
            until.wait(0.01)
        assert those.events.refused == {"mlx5_0": "there is none"}
        those.add("mlx5_0")
        those.wait_for(lambda: "mlx5_0" in those.pipes)
        while those.events.refused:
            until.wait(0.01)


def test_of_each_device_it_is_said_why_it_tells_nothing(tmp_path: Path) -> None:
    with devices(tmp_path, "mlx5_0") as those:
        those.events.hold({"mlx5_0": True, "mlx5_1": True})
        until = threading.Event()
        while "mlx5_0" not in those.pipes or "mlx5_1" not in those.events.refused:
            until.wait(0.01)

        why = {name: those.events.why_silent(f"mlx5_{name}", otherwise="no") for name in "012"}
        assert why == {"0": None, "1": "there is none", "2": "no"}


def test_a_fault_of_ours_ends_only_verbs_and_lets_go_of_all(tmp_path: Path) -> None:
    with devices(tmp_path, "mlx5_0") as those:
        those.events.hold({"mlx5_0": True})
        those.wait_for(lambda: "mlx5_0" in those.pipes)

        def fails(_hint: VerbsHint) -> None:
            raise ZeroDivisionError("a fault")

        those.events._tell = fails
        those.tell("mlx5_0", record(1, 10))
        those.wait_for(lambda: those.closed == ["mlx5_0"])

    assert those.events.trouble == "it failed: ZeroDivisionError('a fault')"
    assert those.events.why_silent("mlx5_0", otherwise="no") == those.events.trouble


def test_what_is_not_to_be_held_any_more_is_let_go(tmp_path: Path) -> None:
    with devices(tmp_path, "mlx5_0", "mlx5_1") as those:
        those.events.hold({"mlx5_0": True, "mlx5_1": True})
        those.wait_for(lambda: len(those.pipes) == 2)
        those.events.hold({"mlx5_1": True})
        those.wait_for(lambda: those.closed == ["mlx5_0"])


@pytest.mark.parametrize("raw", [b"", b"short", record(5, 1), record(5, 16), record(5, 99)])
def test_what_is_no_event_of_a_port_or_device_is_left(raw: bytes) -> None:
    assert hint_of("mlx5_0", raw, 1) is None


@given(st.binary(max_size=32))
def test_any_bytes_are_an_event_or_none(raw: bytes) -> None:
    hint_of("mlx5_0", raw, 1)


def test_of_what_opening_a_device_opened_the_events_are_found_by_name() -> None:
    reading, writing = os.pipe()
    closed: list[bool] = []
    opened = {(5, "/dev/infiniband/uverbs3"), (reading, "anon_inode:[infinibandevent]")}

    held = held_by("mlx5_0", opened, lambda: closed.append(True))

    assert (held.node, held.events, closed) == ("uverbs3", reading, [])
    assert not os.get_blocking(reading)
    os.close(reading)
    os.close(writing)


@pytest.mark.parametrize(
    "opened",
    [set(), {(5, "/dev/infiniband/uverbs3")}, {(6, "anon_inode:[infinibandevent]")}],
    ids=["nothing", "no events", "no node"],
)
def test_where_they_are_not_found_the_device_is_closed_again(opened: set[tuple[int, str]]) -> None:
    closed: list[bool] = []

    with pytest.raises(OSError, match="its events were not found"):
        held_by("mlx5_0", opened, lambda: closed.append(True))

    assert closed == [True]


def test_every_open_descriptor_is_known_by_what_it_leads_to(tmp_path: Path) -> None:
    with (tmp_path / "file").open("w") as file:
        assert descriptors()[file.fileno()] == str(tmp_path / "file")
