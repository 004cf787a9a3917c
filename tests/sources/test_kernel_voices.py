"""What is made of the kernel's words, by which ports are hurried and what is told."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import EBADMSG, ENOBUFS
from pathlib import Path
from typing import cast

import pytest

from flapd.model.observation import KernelHint
from flapd.model.port import Port
from flapd.sources.kernel_voices import KernelVoices
from flapd.sources.rdma_monitor import DeviceEvent, RdmaMonitor
from flapd.sources.sampler_link import Orders
from flapd.sources.settings import OFF, PortsSettings, SamplingSettings, SourcesSettings
from flapd.sources.verbs import VerbsHint

PORTS = (
    Port("a/1", "mlx5_0", 1, "InfiniBand", pci="0000:05:00.0"),
    Port("b/1", "mlx5_1", 1, "Ethernet", pci="0000:06:00.0", netdev="eth2"),
    Port("b/1/eth2", "mlx5_1", 1, "Ethernet", netdev="eth2", member="eth2"),
)


class Noted:
    """Notes what is asked of a sampler."""

    def __init__(self) -> None:
        self.hurried: list[str] = []
        self.looked: list[str | None] = []
        self.told: list[KernelHint] = []

    def hurry(self, concerns: Callable[[Port], bool]) -> bool:
        keys = [port.key for port in PORTS if concerns(port)]
        self.hurried += keys
        return bool(keys)

    def look_again(self, device: str | None) -> None:
        self.looked.append(device)

    def tell(self, message: KernelHint) -> bool:
        self.told.append(message)
        return True


class Monitor:
    """Tells what the test wants."""

    def __init__(self, events: list[DeviceEvent] | OSError) -> None:
        self._events = events

    def events(self) -> list[DeviceEvent]:
        if isinstance(self._events, OSError):
            raise self._events
        return self._events


@contextmanager
def voices(root: Path, *heard: str) -> Iterator[tuple[KernelVoices, Noted, int]]:
    """With the writing end of its kernel log."""
    reading, kernel = os.pipe2(os.O_DIRECT)
    (root / "kmsg").symlink_to(f"/proc/self/fd/{reading}")
    silent = {name: OFF for name in SourcesSettings.__struct_fields__ if name not in heard}
    orders = Orders(
        sysfs="/nowhere",
        ring="/nowhere",
        boot="boot1",
        sampling=SamplingSettings(),
        ports=PortsSettings(),
        dev=str(root),
        silent=silent,
    )
    noted = Noted()
    made = KernelVoices(orders, noted)
    yield made, noted, kernel
    for listener in made.listeners:
        listener.close()
    os.close(kernel)
    os.close(reading)


def test_only_what_is_not_silent_is_listened_to(tmp_path: Path) -> None:
    with voices(tmp_path) as (silent, _, _):
        assert silent.listeners == []
        assert silent.sources_of("mlx5_0") == {"verbs": OFF, "kernel_log": OFF}


def test_a_line_hurries_its_ports_each_time_and_is_told_once(tmp_path: Path) -> None:
    with voices(tmp_path, "kernel_log") as (heard, noted, kernel):
        (log,) = heard.listeners
        assert log.fileno() is not None
        for text in [
            "mlx5_core 0000:05:00.0: Fatal error 3 detected",
            "mlx5_core 0000:05:00.0: Fatal error 3 detected",
            "mlx5_core 0000:06:00.0 eth2: Link down",
            "mlx5_core 0000:09:00.0 eth7: Link down",
            "nothing of a link",
        ]:
            os.write(kernel, f"6,1,100,-;{text}\n".encode())
        log.hear()

        assert log.trouble is None
        assert heard.sources_of("mlx5_0")["kernel_log"] == "on"
    assert noted.hurried == ["a/1", "a/1", "b/1", "b/1/eth2"]
    assert [hint.line.about for hint in noted.told] == ["firmware", "link_down"]


@pytest.mark.parametrize(
    ("events", "looked"),
    [
        ([], []),
        ([DeviceEvent("registered", "mlx5_0"), DeviceEvent("renamed", "mlx5_0")], ["mlx5_0"]),
        (OSError(ENOBUFS, "overrun"), [None]),
    ],
)
def test_what_devices_there_are_is_looked_at_when_the_kernel_tells_of_one_or_of_too_many(
    tmp_path: Path, events: list[DeviceEvent] | OSError, looked: list[str | None]
) -> None:
    with voices(tmp_path) as (heard, noted, _):
        heard._hear_monitor(cast("RdmaMonitor", Monitor(events)))

    assert noted.looked == looked


def test_a_monitor_that_tells_no_sense_is_left_to_its_listener(tmp_path: Path) -> None:
    with voices(tmp_path) as (heard, noted, _), pytest.raises(OSError, match="no sense"):
        heard._hear_monitor(cast("RdmaMonitor", Monitor(OSError(EBADMSG, "no sense"))))

    assert noted.looked == []


def test_the_end_of_a_device_has_its_ports_read_and_devices_looked_for(tmp_path: Path) -> None:
    with voices(tmp_path) as (heard, noted, _):
        heard._hear_verbs(VerbsHint("mlx5_1", None, "device_fatal", 1))
        heard._hear_verbs(VerbsHint("mlx5_0", 1, "port_error", 1))
        heard._hear_verbs(VerbsHint("mlx5_0", 1, "gid_change", 1))

    assert noted.looked == ["mlx5_1"]
    assert noted.hurried == ["b/1", "b/1/eth2", "a/1"]
