"""Takes the carrier of a real veth away, again and again, and asks when the agent tells of it.

Run in a network namespace of its own with its own /sys: prints how late each was, in ms.
"""

import http.client
import json
import random
import sys
import time
from contextlib import closing

from flapd.model.times import MILLISECOND_NS
from tests.asking import UnixConnection
from tests.bench.agent import started
from tests.bench.machine import memory_directory
from tests.system.harness import SimulatedNode, simulated_fabric, until
from tests.system.veth_flaps import Peer, port_on_veth

_CONFIG = """
[flap]
merge_within = 0
"""
_PAUSE_SECONDS = (0.15, 0.35)
_PATIENCE_SECONDS = 10.0
_ASK_EVERY_SECONDS = 0.002
_NEWEST = "/api/v1/flaps?limit=1"


def newest(connection: http.client.HTTPConnection) -> tuple[str | None, str | None]:
    """Id and status of the newest record."""
    connection.request("GET", _NEWEST)
    items = json.loads(connection.getresponse().read())["items"]
    return (items[0]["id"], items[0]["status"]) if items else (None, None)


def late_ms(connection: http.client.HTTPConnection, peer: Peer) -> float:
    """From just before the link went to the answer that has the record of it."""
    known, _ = newest(connection)
    before_ns, _ = peer.set_up(False)
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while newest(connection)[0] == known:
        assert time.monotonic() < deadline, "a flap was not told"
        time.sleep(_ASK_EVERY_SECONDS)
    return (time.monotonic_ns() - before_ns) / MILLISECOND_NS


def main(count: int) -> None:
    peer, chance = Peer(), random.Random(3)
    with memory_directory() as directory:
        node = SimulatedNode(directory, _CONFIG)
        with simulated_fabric(node, port_on_veth(), origin_in_seconds=0), started(node):
            until(lambda: has_events(node), "rtnetlink, of the port")
            late = []
            with closing(UnixConnection(node.socket)) as connection:
                for _ in range(count):
                    time.sleep(chance.uniform(*_PAUSE_SECONDS))
                    late.append(late_ms(connection, peer))
                    time.sleep(chance.uniform(*_PAUSE_SECONDS))
                    peer.set_up(True)
                    until(lambda: newest(connection)[1] != "open", "the end of a flap")
    sys.stdout.write(json.dumps(late))


def has_events(node: SimulatedNode) -> bool:
    return all(port["sources"]["rtnetlink"] == "on" for port in node.get("/api/v1/ports")["items"])


if __name__ == "__main__":
    main(int(sys.argv[1]))
