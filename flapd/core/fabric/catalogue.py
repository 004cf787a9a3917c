"""The counter catalogue: what is known of each file of a port, as data.

Names are paths below the port's directory (`counters/link_downed`), below its
netdev (`net/carrier_down_count`), or of the port itself (`state`). Widths and stops:
drivers/infiniband/core/sysfs.c, include/rdma/ib_pma.h, IBTA 1.8 §16.1.3.5 ("shall
stop at all ones"); mlx5 Q counters are 32-bit registers that wrap
(drivers/infiniband/hw/mlx5/counters.c).
"""

from collections.abc import Collection
from typing import Literal

import msgspec

from flapd.model.times import SECOND_NS

Tier = Literal["fast", "slow", "rare"]
Overflow = Literal["stops", "wraps"]
Class = Literal["error", "traffic", "state"]


class Counter(msgspec.Struct, frozen=True):
    """One file: its name in node_exporter is `metric`, `scale` turns its unit into that one's."""

    name: str
    metric: str
    tier: Tier
    bits: int = 64
    overflow: Overflow = "wraps"
    scale: int = 1
    klass: Class = "error"
    lag_ns: int = 0
    """How long it may take to count what the state already shows."""

    @property
    def stop(self) -> int | None:
        """The value at which it counts no further; None where it wraps."""
        return (1 << self.bits) - 1 if self.overflow == "stops" else None


STATE = "state"
PHYSICAL_STATE = "phys_state"
RATE_MBPS = "rate_mbps"
WIDTH_LANES = "width_lanes"
LINK_DOWNED = "counters/link_downed"
CARRIER = "net/carrier"
CARRIER_DOWNS = "net/carrier_down_count"
CARRIER_UPS = "net/carrier_up_count"

ACTIVE_STATES = (4, 5)
"""IB_PORT_ACTIVE and IB_PORT_ACTIVE_DEFER (include/rdma/ib_verbs.h)."""
PHYSICAL_LINK_UP = 5
"""IB_PORT_PHYS_STATE_LINK_UP (include/rdma/ib_verbs.h)."""

REFRESHES_THE_REST = "hw_counters/rx_write_requests"
"""mlx5 refreshes all hardware counters when this one is read, and keeps them for 10 ms; read in
any other order each of them costs up to three commands of the firmware (core/sysfs.c:
update_hw_stats, hw/mlx5/counters.c: mlx5_ib_get_hw_stats)."""

_OCTETS = 4  # port_*_data count units of four octets


def _pma(
    name: str,
    metric: str,
    bits: int,
    tier: Tier = "rare",
    *,
    scale: int = 1,
    klass: Class = "error",
    lag_ns: int = 0,
) -> Counter:
    """PMA counters stop; those of traffic have 64 bits and are taken to wrap, if ever."""
    overflow: Overflow = "stops" if klass == "error" else "wraps"
    return Counter(f"counters/{name}", metric, tier, bits, overflow, scale, klass, lag_ns)


def _q(name: str, metric: str, klass: Class = "error", bits: int = 32) -> Counter:
    return Counter(f"hw_counters/{name}", metric, "slow", bits=bits, klass=klass)


_COUNTERS = (
    _pma("link_downed", "link_downed", 8, "fast", lag_ns=SECOND_NS),
    _pma("symbol_error", "symbol_error", 16, "slow"),
    _pma("link_error_recovery", "link_error_recovery", 8, "slow"),
    _pma("port_rcv_errors", "port_errors_received", 16),
    _pma("port_rcv_remote_physical_errors", "port_receive_remote_physical_errors", 16),
    _pma("port_rcv_switch_relay_errors", "port_receive_switch_relay_errors", 16),
    _pma("port_xmit_discards", "port_discards_transmitted", 16),
    _pma("port_xmit_constraint_errors", "port_constraint_errors_transmitted", 8),
    _pma("port_rcv_constraint_errors", "port_constraint_errors_received", 8),
    _pma("local_link_integrity_errors", "local_link_integrity_errors", 4),
    _pma("excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", 4),
    _pma("VL15_dropped", "vl15_dropped", 16),
    _pma("port_xmit_wait", "port_transmit_wait", 32),
    _pma(
        "port_xmit_data",
        "port_data_transmitted_bytes",
        64,
        "fast",
        scale=_OCTETS,
        klass="traffic",
    ),
    _pma("port_rcv_data", "port_data_received_bytes", 64, "slow", scale=_OCTETS, klass="traffic"),
    _pma("port_xmit_packets", "port_packets_transmitted", 64, klass="traffic"),
    _pma("port_rcv_packets", "port_packets_received", 64, klass="traffic"),
    _pma("unicast_xmit_packets", "unicast_packets_transmitted", 64, klass="traffic"),
    _pma("unicast_rcv_packets", "unicast_packets_received", 64, klass="traffic"),
    _pma("multicast_xmit_packets", "multicast_packets_transmitted", 64, klass="traffic"),
    _pma("multicast_rcv_packets", "multicast_packets_received", 64, klass="traffic"),
    _q("local_ack_timeout_err", "local_ack_timeout_errors"),
    _q("packet_seq_err", "packet_sequence_errors"),
    _q("implied_nak_seq_err", "implied_nak_seq_errors"),
    _q("out_of_sequence", "out_of_sequence_packets_received"),
    _q("duplicate_request", "duplicate_requests_packets"),
    _q("rnr_nak_retry_err", "rnr_nak_retry_packets_received"),
    _q("out_of_buffer", "out_of_buffer_drops"),
    _q("req_cqe_error", "req_cqes_errors"),
    _q("req_cqe_flush_error", "req_cqes_flush_errors"),
    _q("req_remote_access_errors", "req_remote_access_errors"),
    _q("req_remote_invalid_request", "req_remote_invalid_request_errors"),
    _q("req_transport_retries_exceeded", "req_transport_retries_exceeded"),
    _q("req_rnr_retries_exceeded", "req_rnr_retries_exceeded"),
    _q("resp_cqe_error", "resp_cqes_errors"),
    _q("resp_cqe_flush_error", "resp_cqes_flush_errors"),
    _q("resp_local_length_error", "resp_local_length_errors"),
    _q("resp_remote_access_errors", "resp_remote_access_errors"),
    _q("roce_adp_retrans", "roce_adp_retransmits"),
    _q("roce_adp_retrans_to", "roce_adp_retransmits_timeout"),
    _q("roce_slow_restart", "roce_slow_restart_used"),
    _q("roce_slow_restart_cnps", "roce_slow_restart_cnps"),
    _q("roce_slow_restart_trans", "roce_slow_restart"),
    _q("rp_cnp_handled", "rp_cnp_packets_handled", "traffic", 64),
    _q("rp_cnp_ignored", "rp_cnp_ignored_packets_received", "error", 64),
    _q("np_cnp_sent", "np_cnp_packets_sent", "traffic", 64),
    _q("np_ecn_marked_roce_packets", "np_ecn_marked_roce_packets_received", "traffic", 64),
    _q("rx_icrc_encapsulated", "rx_icrc_encapsulated_errors", "error", 64),
    _q("rx_write_requests", "rx_write_requests", "traffic"),
    _q("rx_read_requests", "rx_read_requests", "traffic"),
    _q("rx_atomic_requests", "rx_atomic_requests", "traffic"),
    _q("rx_dct_connect", "rx_dct_connect_requests", "traffic"),
    Counter(CARRIER_DOWNS, "carrier_down_changes", "fast", bits=32),
    Counter(CARRIER_UPS, "carrier_up_changes", "fast", bits=32, klass="state"),
)

CATALOGUE: dict[str, Counter] = {counter.name: counter for counter in _COUNTERS}

NOT_A_COUNTER = frozenset({"hw_counters/lifespan"})
"""Files that stand among counters and are settings (core/sysfs.c: the cache's life in ms)."""


def tier_of(name: str) -> Tier:
    """How often a file is read: what the catalogue does not know goes with its directory."""
    counter = CATALOGUE.get(name)
    if counter is not None:
        return counter.tier
    return "slow" if name.startswith("hw_counters/") else "rare"


def stop_of(name: str) -> int | None:
    """The value at which a counter counts no further; None where it wraps or is unknown."""
    counter = CATALOGUE.get(name)
    return counter.stop if counter is not None else None


def bits_of(name: str) -> int:
    """Width of a counter; 64 where it is not known."""
    counter = CATALOGUE.get(name)
    return counter.bits if counter is not None else 64


def lag_of(name: str) -> int:
    """How long in ns a counter may take to count what the state already shows."""
    counter = CATALOGUE.get(name)
    return counter.lag_ns if counter is not None else 0


def witnesses_among(link_layer: str, names: Collection[str]) -> tuple[str, ...]:
    """Which of these files count every down of a port, the best first.

    On Ethernet `link_downed` is none: whether firmware fills it there is not documented.
    """
    candidates = {"InfiniBand": (LINK_DOWNED,), "Ethernet": (CARRIER_DOWNS,)}
    return tuple(name for name in candidates.get(link_layer, ()) if name in names)


def rise_between(name: str, last: int, value: int) -> int | None:
    """How far a counter rose; None where it was reset in between.

    A counter that wraps may be lower than before and have risen; a rise by more than
    half its range, and any fall of a counter that stops, is a reset.
    """
    counter = CATALOGUE[name]
    rise = value - last
    if counter.overflow == "stops":
        return rise if rise >= 0 else None
    rise %= 1 << counter.bits
    return rise if rise < 1 << (counter.bits - 1) else None


def short_name(name: str) -> str:
    """As people know it: `link_downed`, `carrier_down_count`, `out_of_sequence`."""
    return name.rpartition("/")[2]
