"""Devices that come, go, get another name and lose their netdev while agents watch."""

import time
from typing import Any

from tests.kernel.guest.agent import Agent, Agents
from tests.kernel.guest.links import Moment, flap, run, switch

GUID = "0000:00ff:fe00:0030"
"""What rxe makes of the address of w0 (drivers/infiniband/sw/rxe, addrconf_addr_eui48)."""


class Plugged:
    """A device that comes while agents run, on a cable of its own."""

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self.true: list[dict[str, Moment]] = []
        self.answers: dict[str, dict[str, Any]] = {}
        self.gone_within_seconds: dict[str, float] = {}
        run("ip link add w0 address 02:00:00:00:00:30 type veth peer name w1")
        for netdev in ("w0", "w1"):
            run(f"ip link set {netdev} up")

    def add(self, device: str) -> None:
        run(f"rdma link add {device} type rxe netdev w0")

    def flap_as(self, device: str, when: str) -> None:
        """Seen under this name, and flapped once; what the agents answer then."""
        port = f"{device}/1"
        self._agents.until_all_have_seen(port, "w0")
        self.true.append(flap(switch("w1"), 0.3))
        self._agents.until_all_have_seen(port, "w0")
        self._note(when)

    def take_away(self, device: str, command: str, when: str) -> None:
        """While it is watched: the command waits for whoever holds the device open."""
        began = time.monotonic()
        run(command)
        self.gone_within_seconds[when] = time.monotonic() - began
        self._agents.until_all(lambda agent: _is_gone(agent, f"{device}/1"), f"{device} seen gone")
        self._note(when)

    def _note(self, when: str) -> None:
        self.answers[when] = self._agents.each(
            lambda agent: [port for port in agent.ports() if port["guid"] == GUID]
        )


def _is_gone(agent: Agent, port: str) -> bool:
    known = agent.port(port)
    return known is not None and not known["watched"]


def hot_plug(agents: Agents) -> dict[str, Any]:
    plugged = Plugged(agents)
    plugged.add("rxe3")
    plugged.flap_as("rxe3", "added")
    run("rdma dev set rxe3 name mlx5_9")
    plugged.flap_as("mlx5_9", "renamed")
    plugged.take_away("mlx5_9", "rdma link delete mlx5_9", "deleted")
    plugged.add("rxe4")
    plugged.flap_as("rxe4", "added_again")
    run("ip netns add elsewhere")
    plugged.take_away("rxe4", "ip link set w0 netns elsewhere", "moved_away")
    run("ip -n elsewhere link set w0 netns 1")
    run("ip link set w0 up")
    plugged.add("rxe4")
    plugged.flap_as("rxe4", "moved_back")
    return {
        "guid": GUID,
        "true": plugged.true,
        "answers": plugged.answers,
        "gone_within_seconds": plugged.gone_within_seconds,
    }
