"""Any evidence about one or two jobs, as hypothesis strategies."""

from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.model.event import Outage
from flapd.model.fault import FAULT_KINDS, Fault
from flapd.model.given import exactly
from flapd.model.job import Job
from flapd.model.stall import STALL_CLASSES, Stall
from tests.core.incident.parts import DAY, PORTS, fault, job, ns, outage, policy, stall

Item = Outage | Fault | Stall | Job

SECONDS = st.integers(0, 1500)
PORT = st.integers(0, 2)
NAMES = st.sampled_from(["4711", "4712"])


@st.composite
def outages(draw: st.DrawFn) -> Outage:
    at, length = draw(SECONDS), draw(st.sampled_from([0.3, 2.0, 31.0, 60.0, 300.0, None]))
    known: dict[str, Any] = {"settled": draw(st.sampled_from([True, True, False]))}
    if length is None and draw(st.booleans()):
        known["status"] = "lost"
    return outage(at, length, draw(PORT), **known)


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    kind, at = draw(st.sampled_from(FAULT_KINDS)), draw(SECONDS)
    rank = draw(st.integers(0, 3))
    known: dict[str, Any] = {
        "id": f"fault-{kind}-{at}-{rank}",
        "job": draw(st.sampled_from(["4711", "4712", None])),
        "primary": draw(st.booleans()),
        "status": draw(st.sampled_from([None, 4, 5, 12, 18])),
        "rank": rank,
        "hca": draw(st.sampled_from([None, "mlx5_0", "mlx5_1"])),
        "clock_error_ns": draw(st.sampled_from([0, 2_000_000_000])),
    }
    if kind in ("watchdog_timeout", "heartbeat"):
        known["ran_seconds"] = draw(st.sampled_from([None, 30.0, 600.0]))
        known["timeout_seconds"] = draw(st.sampled_from([None, 30.0, 600.0]))
    return fault(kind, at, **known)


@st.composite
def stalls(draw: st.DrawFn) -> Stall:
    at, name = draw(SECONDS), draw(NAMES)
    return stall(
        at,
        draw(st.sampled_from([1.2, 4.3, 40.0, 400.0, None])),
        id=f"stall-{name}-{at}",
        job=name,
        stall_class=draw(st.sampled_from(STALL_CLASSES)),
        ports=tuple(draw(st.lists(st.sampled_from(list(PORTS)), min_size=1, unique=True))),
        expected_seconds=draw(st.sampled_from([0.0, 1.6])),
    )


@st.composite
def jobs(draw: st.DrawFn, name: str) -> Job:
    ports = draw(st.lists(st.sampled_from(list(PORTS)[:3]), unique=True))
    return job(
        name,
        ports=dict.fromkeys(ports, "queue_pair"),
        kind=draw(st.sampled_from(["training", "training", "elastic", "inference"])),
        world_size=draw(st.sampled_from([None, exactly(8, "log"), exactly(1024, "log")])),
        since_unix_ns=draw(st.sampled_from([ns(-DAY), ns(-DAY), ns(400)])),
        until_unix_ns=draw(st.sampled_from([None, None, ns(700)])),
        stalls_seen_since_unix_ns=draw(st.sampled_from([None, ns(-100)])),
        policy=policy(
            draw(st.sampled_from([0, 14, 20, 22])),
            coordinated=exactly(draw(st.booleans()), "version"),
        ),
    )


def before(item: Item) -> Item:
    """As it may have been told at first: less was known of it."""
    older: dict[str, Any] = {"revision": item.revision - 1}
    if isinstance(item, Outage):
        older |= {"up": None, "status": "open", "down_ns_min": None, "down_ns_max": None}
    elif isinstance(item, Stall):
        older |= {"end_ns": None, "stall_class": "unknown"}
    elif isinstance(item, Fault):
        older |= {"job": None, "primary": not item.primary}
    else:
        older |= {"ports": {}, "world_size": None, "until_unix_ns": None}
    return replace(item, **older)


@st.composite
def sets(draw: st.DrawFn) -> list[Item]:
    """Each id once."""
    names = draw(st.sampled_from([["4711"], ["4711", "4712"], []]))
    items: list[Item] = [draw(jobs(name)) for name in names]
    items += draw(st.lists(outages() | faults() | stalls(), max_size=12))
    return list({item.id: item for item in items}.values())
