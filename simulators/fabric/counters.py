"""Counters: how each counter file of an mlx5 port moves with its timeline.

Names and widths: drivers/infiniband/core/sysfs.c, include/rdma/ib_pma.h (which stop at
all ones) and drivers/infiniband/hw/mlx5/counters.c (which wrap at 32 bits). That the
files stand together like this is from the kernel's source, not from a capture.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple

from flapd.model.times import SECOND_NS
from simulators.fabric.node import File, Leaves, decimal, fixed
from simulators.fabric.schedule import Timeline

LinkLayer = Literal["InfiniBand", "Ethernet"]


class Rule(NamedTuple):
    """How one counter moves.

    It rises by `per_down` with each down, and by one each `units_per_step` of traffic
    (a unit is four octets; 0: traffic does not move it).
    """

    bits: int
    stops: bool
    per_down: int = 0
    units_per_step: int = 0

    def shown(self, value: int) -> int:
        top = (1 << self.bits) - 1
        return min(value, top) if self.stops else value & top


def _stops(bits: int, per_down: int = 0) -> Rule:
    return Rule(bits, stops=True, per_down=per_down)


def _wraps(bits: int, per_down: int = 0, units_per_step: int = 0) -> Rule:
    return Rule(bits, stops=False, per_down=per_down, units_per_step=units_per_step)


_PACKET_UNITS = 4096 // 4
_WRITE_UNITS = (1 << 20) // 4

_PMA: dict[str, Rule] = {
    "symbol_error": _stops(16),
    "link_error_recovery": _stops(8),
    "link_downed": _stops(8, per_down=1),
    "port_rcv_errors": _stops(16),
    "port_rcv_remote_physical_errors": _stops(16),
    "port_rcv_switch_relay_errors": _stops(16),
    "port_xmit_discards": _stops(16),
    "port_xmit_constraint_errors": _stops(8),
    "port_rcv_constraint_errors": _stops(8),
    "local_link_integrity_errors": _stops(4),
    "excessive_buffer_overrun_errors": _stops(4),
    "VL15_dropped": _stops(16),
    "port_xmit_wait": _stops(32),
    "port_xmit_data": _wraps(64, units_per_step=1),
    "port_rcv_data": _wraps(64, units_per_step=1),
    "port_xmit_packets": _wraps(64, units_per_step=_PACKET_UNITS),
    "port_rcv_packets": _wraps(64, units_per_step=_PACKET_UNITS),
    "unicast_xmit_packets": _wraps(64, units_per_step=_PACKET_UNITS),
    "unicast_rcv_packets": _wraps(64, units_per_step=_PACKET_UNITS),
    "multicast_xmit_packets": _wraps(64),
    "multicast_rcv_packets": _wraps(64),
}

_STILL_32 = (
    "rx_read_requests",
    "rx_atomic_requests",
    "rx_dct_connect",
    "out_of_buffer",
    "out_of_sequence",
    "duplicate_request",
    "rnr_nak_retry_err",
    "implied_nak_seq_err",
    "resp_local_length_error",
    "resp_cqe_error",
    "req_cqe_error",
    "req_remote_invalid_request",
    "req_remote_access_errors",
    "resp_remote_access_errors",
    "resp_cqe_flush_error",
    "req_cqe_flush_error",
    "req_transport_retries_exceeded",
    "req_rnr_retries_exceeded",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
)
_STILL_64 = (
    "rp_cnp_ignored",
    "rp_cnp_handled",
    "np_ecn_marked_roce_packets",
    "np_cnp_sent",
    "rx_icrc_encapsulated",
)

_HW: dict[str, Rule] = {
    "rx_write_requests": _wraps(32, units_per_step=_WRITE_UNITS),
    "local_ack_timeout_err": _wraps(32, per_down=7),
    "packet_seq_err": _wraps(32, per_down=3),
    **dict.fromkeys(_STILL_32, _wraps(32)),
    **dict.fromkeys(_STILL_64, _wraps(64)),
}

CARRIER_DOWNS = "net/carrier_down_count"
CARRIER_UPS = "net/carrier_up_count"

RULES: dict[str, Rule] = {
    **{f"counters/{name}": rule for name, rule in _PMA.items()},
    **{f"hw_counters/{name}": rule for name, rule in _HW.items()},
}

NAMES = frozenset({*RULES, CARRIER_DOWNS, CARRIER_UPS})
"""Counters that can be given a first value."""

# 10 ms of RDMA_HW_STATS_DEFAULT_LIFESPAN read back from jiffies on HZ=250, as captured.
_LIFESPAN_MS = "12"


def counter_files(
    timeline: Timeline,
    link_layer: LinkLayer,
    bytes_per_second: int,
    initial: Mapping[str, int],
) -> Leaves:
    """`counters/` and `hw_counters/` of a port, by path below the port's directory."""
    rules = _rules_of(link_layer)
    units_per_second = bytes_per_second // 4
    files = {
        name: _file(rule, timeline, units_per_second, initial.get(name, 0))
        for name, rule in rules.items()
    }
    return {**files, "hw_counters/lifespan": fixed(_LIFESPAN_MS)}


def _rules_of(link_layer: LinkLayer) -> dict[str, Rule]:
    if link_layer == "InfiniBand":
        return RULES
    # Nobody has confirmed that mlx5 fills link_downed of an Ethernet port.
    return {**RULES, "counters/link_downed": _stops(8)}


def _file(rule: Rule, timeline: Timeline, units_per_second: int, initial: int) -> File:
    step_ns = rule.units_per_step * SECOND_NS
    if step_ns:
        return decimal(
            lambda t: rule.shown(initial + timeline.active_ns(t) * units_per_second // step_ns),
            "flows",
        )
    if rule.per_down:
        return decimal(
            lambda t: rule.shown(initial + rule.per_down * timeline.downs(t)),
            "edges",
        )
    return fixed(str(rule.shown(initial)))
