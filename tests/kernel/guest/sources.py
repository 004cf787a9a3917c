"""In a virtual machine: the sampler alone, with every source of the kernel as it is by default.

Writes /out/sources.json: what it told, and what the kernel's files said at the same time.
"""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from tests.kernel.guest.agent import until
from tests.kernel.guest.links import cable, carrier, read, run, switch

_PYTHON = "/opt/flapd/bin/python"
if sys.executable != _PYTHON:
    os.execv(_PYTHON, [_PYTHON, "-u", "-m", "tests.kernel.guest.sources"])

import msgspec  # noqa: E402 - flapd's own Python has it

from flapd.model.duration import parse_duration  # noqa: E402
from flapd.model.observation import KernelHint, PortSeen, Sample  # noqa: E402
from flapd.sources.kernel_sources import silent_sources  # noqa: E402
from flapd.sources.rdma_monitor import RdmaMonitor, open_monitor  # noqa: E402
from flapd.sources.rdma_netlink import RdmaNetlink, parse_counters, parse_port  # noqa: E402
from flapd.sources.sampler_link import (  # noqa: E402
    Orders,
    SourcesHeard,
    Told,
    make_link,
    receive,
    send,
)
from flapd.sources.settings import (  # noqa: E402
    PathsSettings,
    PortsSettings,
    SamplingSettings,
    SourcesSettings,
)

OUT = Path("/out")
PATIENCE_SECONDS = 60.0
DEVICES = ("rxe0", "rxe1", "rxe2")
NOT_ASKED = "not asked yet"
HARDWARE = Path("/sys/class/infiniband/rxe0/ports/1/hw_counters")

T = TypeVar("T")


class Running:
    """A sampler, and what it has told."""

    def __init__(self, **orders: Any) -> None:
        self.link, theirs = make_link()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "flapd.sources.sampler", "--link", str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
        )
        theirs.close()
        ring = Path("/tmp/ring")
        ring.mkdir(exist_ok=True)
        sampling = SamplingSettings(slow_interval=parse_duration("500ms"))
        send(self.link, Orders("/sys", str(ring), "boot1", sampling, PortsSettings(), **orders))
        self.told: list[Told] = []

    def next(self, kind: type[T], condition: Callable[[T], bool] = lambda _told: True) -> T:
        seen: list[Told] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            while self.told:
                told = self.told.pop(0)
                seen.append(told)
                if isinstance(told, kind) and condition(told):
                    return told
            self.told += receive(self.link, PATIENCE_SECONDS)
        raise AssertionError(f"no such {kind.__name__} came, but {seen[-20:]}")

    def sample(self, key: str, condition: Callable[[Sample], bool]) -> Sample:
        return self.next(Sample, lambda sample: sample.key == key and condition(sample))

    def end(self) -> None:
        self.link.close()
        self.process.wait(PATIENCE_SECONDS)


def both_ways(netlink: RdmaNetlink, name: str) -> dict[str, Any]:
    """What netlink and sysfs say of a port at the same time."""
    directory = Path("/sys/class/infiniband") / name
    device = netlink.find(name, read(str(directory / "node_guid")))
    port = parse_port(netlink.port_answer(device.index, 1))
    files = (directory / "ports/1/hw_counters").iterdir()
    return {
        "by_netlink": {
            "state": port.state,
            "phys_state": port.physical_state,
            "netdev": port.netdev,
            **parse_counters(netlink.counters_answer(device.index, 1)).values,
        },
        "by_files": {
            "state": int(read(str(directory / "ports/1/state")).split(":")[0]),
            "phys_state": int(read(str(directory / "ports/1/phys_state")).split(":")[0]),
            "netdev": read(str(directory / "parent")),
            **{f"hw_counters/{f.name}": int(read(str(f))) for f in files if f.name != "lifespan"},
        },
    }


def until_all_are(state: int) -> None:
    states = [Path(f"/sys/class/infiniband/{device}/ports/1/state") for device in DEVICES]
    until(lambda: all(read(str(file)).startswith(f"{state}:") for file in states), f"state {state}")


def begun(sampler: Running, told: dict[str, Any]) -> str:
    """Its first port, by key, once all is told of it."""
    port = sampler.next(PortSeen, lambda seen: seen.port.device == "rxe0").port
    slow = sampler.sample(port.key, lambda sample: any("hw_c" in name for name in sample.values))
    told["by_sampler"] = {name: v for name, v in slow.values.items() if "hw_c" in name}
    told["by_files"] = {
        f"hw_counters/{file.name}": int(read(str(file)))
        for file in HARDWARE.iterdir()
        if file.name != "lifespan"
    }
    told["sources"] = sampler.next(
        SourcesHeard,
        lambda heard: NOT_ASKED not in json.dumps(heard.by_device.get("rxe0", NOT_ASKED)),
    ).by_device["rxe0"]
    return port.key


def down_and_up(sampler: Running, key: str, netlink: RdmaNetlink, told: dict[str, Any]) -> None:
    changes = {"rxe0": switch("v1"), "rxe1": cable("eth0"), "rxe2": carrier("d0")}
    for device in ("rxe1", "rxe2"):
        changes[device](False)
    began_ns = changes["rxe0"](False)[0]
    hint = sampler.next(KernelHint, lambda hint: hint.line.device == "rxe0")
    down = sampler.sample(key, lambda sample: sample.values.get("state") == 1)
    told["hint"] = {
        "about": hint.line.about,
        "logged": hint.logged_ns - began_ns,
        "received": hint.received_ns - began_ns,
        "state_seen": down.after_ns - began_ns,
    }
    until_all_are(1)
    told["ports"]["down"] = {device: both_ways(netlink, device) for device in DEVICES}
    for change in changes.values():
        change(True)
    until_all_are(4)
    sampler.sample(key, lambda sample: sample.values.get("state") == 4)


def monitor_of(netlink: RdmaNetlink) -> RdmaMonitor | None:
    """None where this kernel tells nothing of devices."""
    return open_monitor(netlink) if netlink.has_monitor() else None


def registered_anew(sampler: Running, key: str, netlink: RdmaNetlink, told: dict[str, Any]) -> None:
    """Under the name it had, at once: discovery may have seen it gone, or not."""
    monitor = monitor_of(netlink)

    def tells_it(message: object) -> bool:
        if isinstance(message, PortSeen):
            return message.port.key == key
        return (
            isinstance(message, Sample)
            and message.key == key
            and "ENODEV" in message.errors.values()
        )

    began_ns = time.monotonic_ns()
    run("rdma link delete rxe0")  # which waits for whoever holds the device
    told["deleted_within"] = (time.monotonic_ns() - began_ns) / 1e9
    run("rdma link add rxe0 type rxe netdev v0")
    told["registered_anew"] = type(sampler.next(object, tells_it)).__name__
    sampler.sample(key, lambda sample: sample.values.get("state") == 4)
    told["monitor"] = None if monitor is None else monitor.events()


def main() -> None:
    silent = silent_sources(SourcesSettings(), PathsSettings())
    told: dict[str, Any] = {"silent": silent, "kernel": platform.release()}
    netlink = RdmaNetlink()
    told["ports"] = {"up": {device: both_ways(netlink, device) for device in DEVICES}}
    sampler = Running(silent=told["silent"])
    try:
        key = begun(sampler, told)
        down_and_up(sampler, key, netlink, told)
        registered_anew(sampler, key, netlink, told)
    finally:
        sampler.end()
        (OUT / "sources.json").write_text(json.dumps(msgspec.to_builtins(told)))


if __name__ == "__main__":
    main()
