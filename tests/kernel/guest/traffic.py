"""Traffic: RDMA between two devices of this kernel, over a cable that is pulled meanwhile."""

import time
from pathlib import Path
from typing import Any

from tests.kernel.guest.agent import Agents
from tests.kernel.guest.links import cable, flap, guid_of, read, run
from tests.kernel.guest.program import Program
from tests.kernel.guest.queue_pairs import queue_pairs

NEAR, FAR = "rxe1", "far0"
OUTAGE_SECONDS = (2.0, 20.0)
COUNTERS = ("completer_retry_err", "retry_exceeded_err", "duplicate_request")
_IPV4 = Path("/proc/sys/net/ipv4/conf")
_BEFORE_AND_AFTER_SECONDS = 1.0
_ADDRESSES = {"eth0": "10.9.0.1", "eth1": "10.9.0.2"}
_ROUTING = (
    "ip rule add pref 100 lookup local",
    "ip rule del pref 0",
    "ip rule add pref 10 iif lo from 10.9.0.1 to 10.9.0.2 lookup 101",
    "ip rule add pref 11 iif lo from 10.9.0.2 to 10.9.0.1 lookup 102",
    "ip route add 10.9.0.2 dev eth0 src 10.9.0.1 table 101",
    "ip route add 10.9.0.1 dev eth1 src 10.9.0.2 table 102",
)


def _lay_out() -> None:
    """rxe lives in the first network namespace only; by rules what is for ourselves goes out."""
    run("ip link set eth1 up")
    for netdev in ("all", *_ADDRESSES):
        settings = {"accept_local": 1, "rp_filter": 0, "arp_ignore": 1, "arp_announce": 2}
        for name, value in settings.items():
            (_IPV4 / netdev / name).write_text(str(value))
    for netdev, address in _ADDRESSES.items():
        run(f"ip addr add {address}/24 dev {netdev}")
    for command in _ROUTING:
        run(command)
    for netdev, other in (("eth0", "eth1"), ("eth1", "eth0")):
        hardware = read(f"/sys/class/net/{other}/address")
        neighbour = f"{_ADDRESSES[other]} lladdr {hardware} dev {netdev}"
        run(f"ip neigh replace {neighbour} nud permanent")
    run(f"rdma link add {FAR} type rxe netdev eth1")


def _counters() -> dict[str, int]:
    directory = f"/sys/class/infiniband/{NEAR}/ports/1/hw_counters"
    return {name: int(read(f"{directory}/{name}")) for name in COUNTERS}


def traffic(agents: Agents) -> list[dict[str, Any]]:
    """Of each outage, what the application saw, the kernel counted and the agents told."""
    _lay_out()
    agents.until_all_have_seen(f"{FAR}/1", "eth1")
    return [_outage(agents, seconds) for seconds in OUTAGE_SECONDS]


def _outage(agents: Agents, seconds: float) -> dict[str, Any]:
    before, began_ns = _counters(), time.monotonic_ns()
    writes = Program("tests.kernel.guest.rdma_writes", NEAR, FAR)
    time.sleep(_BEFORE_AND_AFTER_SECONDS)
    pairs_before = queue_pairs()
    true = flap(cable("eth0"), seconds)
    time.sleep(_BEFORE_AND_AFTER_SECONDS)
    pairs_after = queue_pairs()
    application = writes.end()
    counted = _counters()
    agents.until_all_have_seen(f"{NEAR}/1", "eth0")
    agents.until_all(
        lambda agent: counted.items() <= (agent.port(f"{NEAR}/1") or {})["counters"].items(),
        "what the kernel counted",
    )
    return {
        "port": f"{NEAR}/1",
        "true": [true],
        "span": (began_ns, time.monotonic_ns()),
        "application": application,
        "queue_pairs": {"pid": writes.pid, "before": pairs_before, "after": pairs_after},
        "keys": {device: f"{guid_of(device)}/1" for device in (NEAR, FAR)},
        "counted": {name: counted[name] - before[name] for name in COUNTERS},
        "flaps": agents.each(lambda agent: agent.flaps(port=f"{NEAR}/1", limit="1")),
    }
