"""In a virtual machine without any service: what happens to real devices under real agents.

Two watch the same at once, one that only polls and one that hears all the kernel tells.
Writes /out/told.json, what was done and answered by scenario, and /out/AGENT/history.sqlite.
"""

import json
import random
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.kernel.guest.agent import Agent, Agents, copy_history
from tests.kernel.guest.hot_plug import hot_plug
from tests.kernel.guest.links import (
    Change,
    Moment,
    cable,
    carrier,
    downs,
    flap,
    guid_of,
    link_downed,
    run,
    switch,
)
from tests.kernel.guest.program import Program
from tests.kernel.guest.traffic import traffic

OUT = Path("/out")
VETH_FLAPS, CABLE_FLAPS, QUICK_FLAPS = 60, 30, 30
SHORTEST_SECONDS, LONGEST_SECONDS = 0.05, 2.0
NETDEVS = {"rxe0": "v0", "rxe1": "eth0", "rxe2": "d0"}
INTERVAL_SECONDS = 0.4
"""Two agents that read more often would be slow in this machine, and slow themselves down."""
GOLDEN_RATIO = (5**0.5 - 1) / 2
"""Its multiples lie evenly between two whole numbers, however many they are."""
FOR_BOTH = f"""
[flap]
merge_within = 0
[sampling]
interval = {INTERVAL_SECONDS}
slow_interval = {4 * INTERVAL_SECONDS}
[jobs]
discover = false
"""
POLLING = f"""
{FOR_BOTH}
[sources]
rdma_netlink = "off"
rtnetlink = "off"
verbs = "off"
ethtool = "off"
kernel_log = "off"
"""
EVENTS = f"""
{FOR_BOTH}
[sources]
rdma_netlink = "on"
rtnetlink = "on"
verbs = "on"
kernel_log = "on"
"""

Scenario = Callable[[Agents], Any]


def found(agents: Agents) -> dict[str, Any]:
    """What the agents say of each port, and sysfs of its device."""
    return {
        device: {
            "port": agents.each(lambda agent, device=device: agent.port(f"{device}/1")),  # type: ignore[misc]
            "node_guid": guid_of(device),
            "netdev": netdev,
            "downs": downs(netdev),
        }
        for device, netdev in NETDEVS.items()
    }


def flaps(agents: Agents) -> dict[str, Any]:
    """Both at once, at random. After a notice a card's next waits up to 1 s: no flap within it."""
    told: dict[str, Any] = {}
    plans = {
        "rxe0": (switch("v1"), VETH_FLAPS, (0.2, 0.4)),
        "rxe1": (cable("eth0"), CABLE_FLAPS, (1.05, 1.3)),
    }

    def flap_at_random(device: str) -> None:
        change, count, gap_seconds = plans[device]
        told[device] = told_of(agents, device, lambda: _at_random(change, count, gap_seconds))

    threads = [threading.Thread(target=flap_at_random, args=(device,)) for device in plans]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return told


def _at_random(
    change: Change, count: int, gap_seconds: tuple[float, float]
) -> list[dict[str, Moment]]:
    """Short ones as often as long ones, and as many at any time between two readings."""
    chance, true = random.Random(7), []
    for number in range(count):
        time.sleep(chance.uniform(*gap_seconds))
        place_seconds = number * GOLDEN_RATIO % 1 * INTERVAL_SECONDS
        time.sleep((place_seconds - time.monotonic()) % INTERVAL_SECONDS)
        ratio = (LONGEST_SECONDS / SHORTEST_SECONDS) ** chance.random()
        true.append(flap(change, SHORTEST_SECONDS * ratio))
    return true


def told_of(
    agents: Agents, device: str, act: Callable[[], list[dict[str, Moment]]]
) -> dict[str, Any]:
    """What was done to the device's link, how the kernel counted it, and when all of it was."""
    netdev = NETDEVS[device]
    counted, device_counted = downs(netdev), link_downed(device)
    began_ns = time.monotonic_ns()
    true = act()
    agents.until_all_have_seen(f"{device}/1", netdev)
    return {
        "port": f"{device}/1",
        "true": true,
        "span": (began_ns, time.monotonic_ns()),
        "carrier_downs": downs(netdev) - counted,
        "link_downed": link_downed(device) - device_counted,
    }


def burst(agents: Agents) -> dict[str, Any]:
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
        "rxe1": told_of(agents, "rxe1", lambda: five(cable("eth0"))),
        "rxe2": told_of(agents, "rxe2", lambda: five(carrier("d0"))),
    }


def false_link_downed(agents: Agents) -> dict[str, Any]:
    """rxe counts a down whenever anything about a netdev changes that is not running."""

    def toggle_arp() -> list[dict[str, Moment]]:
        down = carrier("d0")(False)
        time.sleep(1)
        for word in ("off", "on", "off", "on"):
            run(f"ip link set d0 arp {word}")
        time.sleep(1)
        return [{"down": down, "up": carrier("d0")(True)}]

    return told_of(agents, "rxe2", toggle_arp)


def switched_off(agents: Agents) -> dict[str, Any]:
    """By hand, and by the cable; with what the agent says meanwhile."""

    def off_and_on(device: str, change: Change) -> dict[str, Any]:
        meanwhile = {}

        def act() -> list[dict[str, Moment]]:
            down = change(False)
            meanwhile["port_meanwhile"] = agents.until_all(
                lambda agent: _port_that_is_down(agent, device), f"{device} seen down"
            )
            time.sleep(1)  # its counts are read beside the state
            return [{"down": down, "up": change(True)}]

        return {**told_of(agents, device, act), **meanwhile}

    return {
        "veth_admin": off_and_on("rxe0", switch("v0")),
        "veth_cable": off_and_on("rxe0", switch("v1")),
        "virtio_admin": off_and_on("rxe1", switch("eth0")),
        "virtio_cable": off_and_on("rxe1", cable("eth0")),
        "dummy_admin": off_and_on("rxe2", switch("d0")),
    }


def _port_that_is_down(agent: Agent, device: str) -> dict[str, Any] | None:
    port = agent.port(f"{device}/1")
    return port if port is not None and port["up"] is False else None


def verbs_events(agents: Agents) -> dict[str, Any]:
    """Flaps so quick that what verbs tell of them is merged, doubled or out of order."""
    program = Program("tests.kernel.guest.verbs_told", "rxe0")

    def many() -> list[dict[str, Moment]]:
        true = []
        for _ in range(QUICK_FLAPS):
            true.append(flap(switch("v1"), 0.003))
            time.sleep(0.05)
        true.append(flap(switch("v0"), 0.05))  # two events of its end
        time.sleep(1)
        return true

    told = told_of(agents, "rxe0", many)
    return {**told, "events": program.end()}


SCENARIOS: dict[str, Scenario] = {
    "found": found,
    "flaps": flaps,
    "burst": burst,
    "false_link_downed": false_link_downed,
    "switched_off": switched_off,
    "verbs_events": verbs_events,
}
AT_ONCE: dict[str, Scenario] = {"hot_plug": hot_plug, "traffic": traffic}
"""Each waits much; on netdevs of their own."""


def watch(configs: Mapping[str, str]) -> None:
    """Agents so configured go through all scenarios; one that fails takes no other with it."""
    started = [Agent(Path("/tmp") / name, config) for name, config in configs.items()]
    agents = Agents(started)
    with agents.running():
        told = {scenario: _outcome(scenario, agents) for scenario in SCENARIOS}
        with ThreadPoolExecutor() as executor:
            outcomes = executor.map(lambda scenario: _outcome(scenario, agents), AT_ONCE)
            told |= dict(zip(AT_ONCE, outcomes, strict=True))
        metrics = agents.each(lambda agent: agent.get_text("/metrics"))
    for agent in started:
        (OUT / agent.name).mkdir()
        (OUT / agent.name / "metrics").write_text(metrics[agent.name])
        copy_history(agent.history, OUT / agent.name / "history.sqlite")
    (OUT / "told.json").write_text(json.dumps(told))


def _outcome(scenario: str, agents: Agents) -> dict[str, Any]:
    began = time.monotonic()
    try:
        return {"told": {**SCENARIOS, **AT_ONCE}[scenario](agents)}
    except (AssertionError, OSError, subprocess.SubprocessError):
        return {"failed": traceback.format_exc()}
    finally:
        sys.stdout.write(f"{scenario} took {time.monotonic() - began:.1f} s\n")


if __name__ == "__main__":
    watch({"polling": POLLING, "events": EVENTS})
    subprocess.run([sys.executable, "-u", "-m", "tests.kernel.guest.sources"], check=False)
