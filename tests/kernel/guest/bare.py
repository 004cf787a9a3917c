"""In a virtual machine without any service: what happens to real devices under the real agent.

Writes /out/AGENT/told.json, what was done and answered by scenario, and the history beside it.
"""

import json
import random
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.kernel.guest.agent import Agent, copy_history, until
from tests.kernel.guest.links import (
    Change,
    Moment,
    cable,
    carrier,
    downs,
    flap,
    link_downed,
    read,
    run,
    switch,
)

OUT = Path("/out")
VETH_FLAPS, CABLE_FLAPS = 60, 30
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 2.0
NETDEVS = {"rxe0": "v0", "rxe1": "eth0", "rxe2": "d0"}
EACH_DOWN_FOR_ITSELF = """
[flap]
merge_within = 0
"""

Scenario = Callable[[Agent], Any]


def found(agent: Agent) -> dict[str, Any]:
    """What the agent says of each port, and sysfs of its device."""
    return {
        device: {
            "port": agent.port(f"{device}/1"),
            "node_guid": read(f"/sys/class/infiniband/{device}/node_guid"),
            "netdev": netdev,
            "downs": downs(netdev),
        }
        for device, netdev in NETDEVS.items()
    }


def flaps(agent: Agent) -> dict[str, Any]:
    """Both at once, at random. After a notice a card's next waits up to 1 s: no flap within it."""
    told: dict[str, Any] = {}
    plans = {
        "rxe0": (switch("v1"), VETH_FLAPS, (0.3, 0.6)),
        "rxe1": (cable("eth0"), CABLE_FLAPS, (1.05, 1.3)),
    }

    def flap_at_random(device: str) -> None:
        change, count, gap_seconds = plans[device]
        told[device] = told_of(agent, device, lambda: _at_random(change, count, gap_seconds))

    threads = [threading.Thread(target=flap_at_random, args=(device,)) for device in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def _at_random(
    change: Change, count: int, gap_seconds: tuple[float, float]
) -> list[dict[str, Moment]]:
    """Short ones as often as long ones."""
    chance, true = random.Random(7), []
    for _ in range(count):
        ratio = (LONGEST_SECONDS / SHORTEST_SECONDS) ** chance.random()
        true.append(flap(change, SHORTEST_SECONDS * ratio))
        time.sleep(chance.uniform(*gap_seconds))
    return true


def told_of(
    agent: Agent, device: str, act: Callable[[], list[dict[str, Moment]]]
) -> dict[str, Any]:
    """What was done to the device's link, how the kernel counted it, and when all of it was."""
    netdev = NETDEVS[device]
    counted, device_counted = downs(netdev), link_downed(device)
    began_ns = time.monotonic_ns()
    true = act()
    until(lambda: agent.has_seen_all(f"{device}/1", netdev), f"the end of {device}'s last flap")
    return {
        "port": f"{device}/1",
        "true": true,
        "span": (began_ns, time.monotonic_ns()),
        "carrier_downs": downs(netdev) - counted,
        "link_downed": link_downed(device) - device_counted,
    }


def burst(agent: Agent) -> dict[str, Any]:
    """Five flaps within half a second: the kernel's notices of them are merged, its counts not."""

    def five(change: Change) -> list[dict[str, Moment]]:
        time.sleep(1.5)  # the first one is to be noticed at once
        true = []
        for _ in range(5):
            true.append(flap(change, 0.05))
            time.sleep(0.05)
        time.sleep(1.5)
        return true

    return {
        "rxe1": told_of(agent, "rxe1", lambda: five(cable("eth0"))),
        "rxe2": told_of(agent, "rxe2", lambda: five(carrier("d0"))),
    }


def false_link_downed(agent: Agent) -> dict[str, Any]:
    """rxe counts a down whenever anything about a netdev changes that is not running."""

    def toggle_arp() -> list[dict[str, Moment]]:
        down = carrier("d0")(False)
        time.sleep(1)
        for word in ("off", "on", "off", "on"):
            run(f"ip link set d0 arp {word}")
        time.sleep(1)
        return [{"down": down, "up": carrier("d0")(True)}]

    return told_of(agent, "rxe2", toggle_arp)


def switched_off(agent: Agent) -> dict[str, Any]:
    """By hand, and by the cable; with what the agent says meanwhile."""

    def off_and_on(device: str, change: Change) -> dict[str, Any]:
        meanwhile = {}

        def act() -> list[dict[str, Moment]]:
            down = change(False)
            until(lambda: _state(agent, device) == "DOWN", f"{device} in state DOWN")
            time.sleep(1)  # its counts are read beside the state
            meanwhile["port_meanwhile"] = agent.port(f"{device}/1")
            return [{"down": down, "up": change(True)}]

        return {**told_of(agent, device, act), **meanwhile}

    return {
        "veth_admin": off_and_on("rxe0", switch("v0")),
        "veth_cable": off_and_on("rxe0", switch("v1")),
        "virtio_admin": off_and_on("rxe1", switch("eth0")),
        "virtio_cable": off_and_on("rxe1", cable("eth0")),
        "dummy_admin": off_and_on("rxe2", switch("d0")),
    }


def _state(agent: Agent, device: str) -> str | None:
    port = agent.port(f"{device}/1")
    return None if port is None else port["state"]


class Plugged:
    """A device that comes while the agent runs, on a cable of its own."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.true: list[dict[str, Moment]] = []
        self.answers: dict[str, Any] = {}
        run("ip link add w0 address 02:00:00:00:00:30 type veth peer name w1")
        for netdev in ("w0", "w1"):
            run(f"ip link set {netdev} up")

    def add(self, device: str) -> None:
        run(f"rdma link add {device} type rxe netdev w0")

    def delete(self, device: str) -> None:
        """With the agent watching: it must hold nothing that keeps the device."""
        run(f"rdma link delete {device}")

    def flap_as(self, device: str, when: str) -> None:
        """Seen under this name, and flapped once; what the agent answers then."""
        port = f"{device}/1"
        until(lambda: self._agent.has_seen_all(port, "w0"), f"{port}, {when},")
        self.true.append(flap(switch("w1"), 0.3))
        until(lambda: self._agent.has_seen_all(port, "w0"), f"the end of the flap {when}")
        self._note(when)

    def gone_as(self, device: str, when: str) -> None:
        until(lambda: self._is_gone(f"{device}/1"), f"the end of {device}, {when},")
        self._note(when)

    def _is_gone(self, port: str) -> bool:
        known = self._agent.port(port)
        return known is not None and not known["watched"]

    def _note(self, when: str) -> None:
        self.answers[when] = [port for port in self._agent.ports() if port["guid"] == GUID]


GUID = "0000:00ff:fe00:0030"
"""What rxe makes of the address of w0 (drivers/infiniband/sw/rxe, addrconf_addr_eui48)."""


def hot_plug(agent: Agent) -> dict[str, Any]:
    plugged = Plugged(agent)
    plugged.add("rxe3")
    plugged.flap_as("rxe3", "added")
    run("rdma dev set rxe3 name mlx5_9")
    plugged.flap_as("mlx5_9", "renamed")
    plugged.delete("mlx5_9")
    plugged.gone_as("mlx5_9", "deleted")
    plugged.add("rxe4")
    plugged.flap_as("rxe4", "added_again")
    run("ip netns add elsewhere")
    run("ip link set w0 netns elsewhere")
    plugged.gone_as("rxe4", "moved_away")
    run("ip -n elsewhere link set w0 netns 1")
    run("ip link set w0 up")
    plugged.add("rxe4")
    plugged.flap_as("rxe4", "moved_back")
    return {"guid": GUID, "true": plugged.true, "answers": plugged.answers}


SCENARIOS: dict[str, Scenario] = {
    "found": found,
    "flaps": flaps,
    "burst": burst,
    "false_link_downed": false_link_downed,
    "switched_off": switched_off,
    "hot_plug": hot_plug,
}


def watch(name: str, config: str, scenarios: Mapping[str, Scenario]) -> None:
    """An agent so configured goes through these; one that fails takes no other with it."""
    out = OUT / name
    out.mkdir()
    told = {}
    agent = Agent(Path("/tmp") / name, config)
    with agent.running():
        for scenario, do in scenarios.items():
            began = time.monotonic()
            try:
                told[scenario] = {"told": do(agent)}
            except (AssertionError, OSError, subprocess.SubprocessError):
                told[scenario] = {"failed": traceback.format_exc()}
            sys.stdout.write(f"{name}: {scenario} took {time.monotonic() - began:.1f} s\n")
        (out / "metrics").write_text(agent.text("/metrics"))
        (out / "flaps.json").write_text(json.dumps(agent.flaps()))
    copy_history(agent.history, out / "history.sqlite")
    (out / "told.json").write_text(json.dumps(told))


if __name__ == "__main__":
    watch("polling", EACH_DOWN_FOR_ITSELF, SCENARIOS)
