"""Edge: how long after a link went down everybody can ask for it."""

import time
from datetime import datetime

from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.settings import SamplingSettings
from simulators.fabric.mount import fuse_missing
from simulators.fabric.truth import Truth
from tests.bench.agent import FLAP_EVERY_SECONDS, node_of, started
from tests.bench.figure import Figure, Scale, percentile
from tests.bench.machine import memory_directory
from tests.system.harness import SimulatedNode, simulated_fabric

_BEGIN_SECONDS = 4.0
_ASK_EVERY_SECONDS = 0.004
_INTERVAL_MS = SamplingSettings().interval.ns / MILLISECOND_NS
_BUDGET_MS = _INTERVAL_MS + 25


def edge_to_record(scale: Scale) -> list[Figure]:
    if fuse_missing() is not None:
        return [_figure(None, f"no simulated fabric: {fuse_missing()}")]
    with memory_directory() as directory:
        node = SimulatedNode(directory)
        spec = node_of(scale.ports, scale.flaps_a_port)
        fabric = simulated_fabric(node, spec, _BEGIN_SECONDS)
        with fabric as truth, started(node):
            seen = _first_seen(node, scale.flaps_a_port * FLAP_EVERY_SECONDS + _BEGIN_SECONDS)
    late_ms = _late_ms(truth, seen)
    if len(late_ms) < len(truth.outages):
        return [_figure(None, f"{len(late_ms)} of {len(truth.outages)} edges came")]
    median = percentile(late_ms, 0.5)
    return [_figure(percentile(late_ms, 0.99), f"{len(late_ms)} edges, median {median:.0f} ms")]


def _figure(value: float | None, note: str) -> Figure:
    return Figure(
        what="edge to queryable record, witness polling: p99",
        unit="ms",
        value=value,
        budget=_BUDGET_MS,
        floor=f"interval {_INTERVAL_MS:.0f} ms",
        note=note,
    )


def _first_seen(node: SimulatedNode, seconds: float) -> list[tuple[int, str, int, int]]:
    """When each outage was in an answer first, its port, and its down edge (unix)."""
    seen: dict[str, tuple[int, str, int, int]] = {}
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for flap in node.get("/api/v1/flaps?limit=40")["items"]:
            down = flap["down"]
            if flap["id"] not in seen:
                edge = (_unix_ns(down["earliest"]), _unix_ns(down["latest"]))
                seen[flap["id"]] = (time.time_ns(), flap["port"], *edge)
        time.sleep(_ASK_EVERY_SECONDS)
    return list(seen.values())


def _late_ms(truth: Truth, seen: list[tuple[int, str, int, int]]) -> list[float]:
    """For each true edge that an outage's interval holds."""
    return [
        (seen_ns - true.down_unix_ns) / MILLISECOND_NS
        for true in truth.outages
        for seen_ns, port, earliest_ns, latest_ns in seen
        if port == true.port and earliest_ns <= true.down_unix_ns <= latest_ns + MILLISECOND_NS
    ]


def _unix_ns(written: str) -> int:
    moment = datetime.fromisoformat(written.replace("Z", "+00:00"))
    return int(moment.timestamp()) * SECOND_NS + moment.microsecond * 1000
