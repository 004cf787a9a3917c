"""Flaps a real veth under the real agent; prints what it did and what the agent found.

Run in a network namespace of its own with its own /sys: `main(directory, count)`.
"""

import fcntl
import json
import random
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from flapd.store.flap_query import FlapQuery
from flapd.store.history_reader import HistoryReader
from simulators.fabric.spec import PortSpec, Spec
from tests.system.harness import SimulatedNode, simulated_fabric, until

NETDEV, PEER = "veth0", "veth1"
PORT = "mlx5_1/1"
SHORTEST_SECONDS, LONGEST_SECONDS = 0.005, 0.5

# include/uapi/linux/sockios.h, if.h
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_IFREQ = struct.Struct("16sH22x")


class Peer:
    """The far end of the cable: when it goes down, carrier is lost at the near end at once."""

    def __init__(self) -> None:
        for command in (
            f"link add {NETDEV} type veth peer name {PEER}",
            f"link set {NETDEV} up",
            f"link set {PEER} up",
        ):
            subprocess.run(["ip", *command.split()], check=True)
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)

    def set_up(self, up: bool) -> tuple[int, int]:
        """Just before and just after it happened (monotonic)."""
        request = _IFREQ.pack(PEER.encode(), 0)
        flags = _IFREQ.unpack(fcntl.ioctl(self._socket, _SIOCGIFFLAGS, request))[1]
        flags = flags | _IFF_UP if up else flags & ~_IFF_UP
        before_ns = time.monotonic_ns()
        fcntl.ioctl(self._socket, _SIOCSIFFLAGS, _IFREQ.pack(PEER.encode(), flags))
        return before_ns, time.monotonic_ns()


def flap(peer: Peer, count: int) -> Iterator[dict[str, tuple[int, int]]]:
    """Down for 5 to 500 ms, short ones as often as long ones; the gaps are short."""
    chance = random.Random(7)
    for _ in range(count):
        down = peer.set_up(False)
        time.sleep(SHORTEST_SECONDS * (LONGEST_SECONDS / SHORTEST_SECONDS) ** chance.random())
        up = peer.set_up(True)
        time.sleep(chance.uniform(0.005, 0.06))
        yield {"down": down, "up": up}


def carrier_downs() -> int:
    return int(Path(f"/sys/class/net/{NETDEV}/carrier_down_count").read_text())


def has_seen_all(node: SimulatedNode) -> bool:
    (port,) = node.get("/api/v1/ports")["items"]
    flaps = node.get("/api/v1/flaps?limit=1000")["items"]
    is_over = all(flap["status"] != "open" for flap in flaps)
    return bool(port["witness"]["value"] == carrier_downs()) and is_over


def found_by(node: SimulatedNode) -> dict[str, Any]:
    listed = node.flapd("flaps", "--json", "--limit", "1000", "--config", str(node.config))
    assert listed.returncode == 0, listed.stderr
    with closing(HistoryReader(node.history)) as history:
        outages = history.flaps(FlapQuery(port=PORT, limit=1000)).items
    edges = [
        {
            "count": outage.count,
            "down": (outage.down.earliest_ns, outage.down.latest_ns),
            "up": outage.up and (outage.up.earliest_ns, outage.up.latest_ns),
        }
        for outage in reversed(outages)
    ]
    return {
        "listed": json.loads(listed.stdout)["items"],
        "edges": edges,
        "metrics": node.get_text("/metrics"),
    }


def port_on_veth() -> Spec:
    """A simulated node whose one port has the carrier of this machine's netdev."""
    port = PortSpec(
        device=PORT.partition("/")[0],
        link_layer="Ethernet",
        netdev=NETDEV,
        guid="b83f:d203:0012:3451",
        pci="0000:5e:00.0",
        real_netdev=f"/sys/class/net/{NETDEV}",
    )
    return Spec((port,))


def main(directory: Path, count: int) -> None:
    peer = Peer()
    node = SimulatedNode(directory)
    with simulated_fabric(node, port_on_veth(), origin_in_seconds=0):
        node.start()
        try:
            until(node.is_ready, "a ready agent")
            before = carrier_downs()
            true = list(flap(peer, count))
            assert carrier_downs() == before + count
            until(lambda: has_seen_all(node), "the end of the last flap")
            sys.stdout.write(json.dumps({"true": true, **found_by(node)}))
            node.terminate()
        finally:
            if node.agent is not None and node.agent.poll() is None:
                node.kill()


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))
