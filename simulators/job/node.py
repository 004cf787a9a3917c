"""Node: one node of the job as a scenario of the simulated fabric: its ports, and their traffic."""

from collections.abc import Iterator
from itertools import pairwise

from simulators.fabric.counters import Burst, Oddity
from simulators.fabric.schedule import Flap, Span
from simulators.fabric.spec import PortSpec, Spec
from simulators.job.happenings import Outage
from simulators.job.record import Run, Wait
from simulators.job.spec import JobSpec

_FIRST_BUS = 0x19
_BUSY_BYTES_PER_SECOND = 40_000_000_000
QUIET_BYTES_PER_SECOND = 2_000
"""Subnet management, IPoIB and keep-alives, of a port that the job does not use."""
_APART_SECONDS = 0.003
"""By which ports of a node begin and end their traffic one after the other."""
_EVER_SECONDS = 1e9
_ACK_TIMEOUTS = "hw_counters/local_ack_timeout_err"
_RETRIES_EXCEEDED = "hw_counters/req_transport_retries_exceeded"
_ADAPTIVE = "hw_counters/roce_adp_retrans"


def node_scenario(run: Run, node: int) -> Spec:
    """As many ports as ranks, and at least one that the job does not use."""
    spec = run.spec
    named = [one.port for one in spec.happenings if isinstance(one, Outage) and one.node == node]
    count = max([spec.ranks_per_node, *named]) + 1
    return Spec(tuple(_port(run, node, number) for number in range(count)))


def _port(run: Run, node: int, number: int) -> PortSpec:
    spec = run.spec
    infiniband = spec.link_layer == "InfiniBand"
    is_used = number < spec.ranks_per_node
    outages = _outages(spec, node, number)
    return PortSpec(
        device=f"mlx5_{number}",
        link_layer=spec.link_layer,
        netdev=f"ib{number}" if infiniband else f"eth{number}",
        guid=f"b83f:d203:{node:04x}:{number + 1:04x}",
        pci=f"0000:{_FIRST_BUS + 8 * number:02x}:00.0",
        bytes_per_second=_BUSY_BYTES_PER_SECOND if is_used else QUIET_BYTES_PER_SECOND,
        subnet_seconds=_subnet_seconds(outages) if infiniband else 0.0,
        flaps=tuple(Flap(one.at_seconds, one.down_seconds) for one in outages),
        traffic_off=tuple(_off(run, _APART_SECONDS * number)) if is_used else (),
        counters=_retransmissions(run, node, number) if is_used else {},
    )


def _outages(spec: JobSpec, node: int, port: int) -> list[Outage]:
    found = [
        one
        for one in spec.happenings
        if isinstance(one, Outage) and (one.node, one.port) == (node, port)
    ]
    return sorted(found, key=lambda one: one.at_seconds)


def _subnet_seconds(outages: list[Outage]) -> float:
    return max((one.usable_after_seconds for one in outages), default=0.0)


def _off(run: Run, later: float) -> Iterator[Span]:
    """Between the spans in which data moved."""
    spans = ((-_EVER_SECONDS, -_EVER_SECONDS), *run.spans, (_EVER_SECONDS, _EVER_SECONDS))
    for (_, last), (first, _) in pairwise(spans):
        if first > last:
            yield Span(last + later, first + later)


def _retransmissions(run: Run, node: int, port: int) -> dict[str, Oddity]:
    """Of the queue pairs of the rank behind this port, whichever end lost its link."""
    rank = run.spec.rank_of(node, port)
    waits = [one for one in run.waits if one.fate.queue_pair.owner == rank]
    name = _ADAPTIVE if run.spec.transport.adaptive else _ACK_TIMEOUTS
    gave_up = [one.fate.at for one in waits if one.fate.gave_up and one.fate.at is not None]
    found = {
        name: Oddity(bursts=tuple(filter(None, (_expiries(run.spec, one) for one in waits)))),
        _RETRIES_EXCEEDED: Oddity(bursts=tuple(Burst(at, 1, 0.001) for at in gave_up)),
    }
    return {counter: oddity for counter, oddity in found.items() if oddity.bursts}


def _expiries(spec: JobSpec, wait: Wait) -> Burst | None:
    """One for each time that the timer fired."""
    if wait.fate.at is None or spec.tick_seconds is None:
        return None
    length = wait.fate.at - wait.begin
    count = max(1, round(length / (spec.tick_seconds * wait.fate.queue_pair.factor)))
    return Burst(wait.begin, count, max(length, 0.001))
