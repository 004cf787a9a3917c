"""Files of a port that every driver has alike: what each counts, when it stops.

Names are paths below the port's directory (`counters/link_downed`), below its netdev
(`net/carrier_down_count`), statistics of its netdev (`ethtool/link_down_events_phy`), or
of the port itself (`state`). Widths and stops of `counters/`: core/sysfs.c,
include/rdma/ib_pma.h, IBTA 1.8 §16.1.3.5 ("shall stop at all ones").
"""

from flapd.core.fabric.catalogue.counter import Class, Counter, Meaning, Tier
from flapd.model.times import SECOND_NS

STATE = "state"
PHYSICAL_STATE = "phys_state"
RATE_FILE = "rate"
RATE_MBPS = "rate_mbps"
WIDTH_LANES = "width_lanes"
CARRIER = "net/carrier"
CARRIER_DOWNS = "net/carrier_down_count"
CARRIER_UPS = "net/carrier_up_count"
FLAGS = "net/flags"
"""Flags of the netdev; bit 0 is IFF_UP (include/uapi/linux/if.h)."""
LINK_DOWNED = "counters/link_downed"
SW_LINK_DOWN = "hw_counters/SwLinkDown,32"
"""What hfi1 clamps to make its link_downed of (hw/hfi1/chip.c, mad.c)."""
LINK_DOWN_EVENTS_PHY = "ethtool/link_down_events_phy"
"""A 32-bit field of PPCNT group 0x12, of InfiniBand ports as well (mlx5/core/en_stats.c)."""

ACTIVE_STATES = (4, 5)
"""IB_PORT_ACTIVE and IB_PORT_ACTIVE_DEFER (include/rdma/ib_verbs.h)."""
PHYSICAL_DISABLED = 3
"""IB_PORT_PHYS_STATE_DISABLED (include/rdma/ib_verbs.h)."""
PHYSICAL_LINK_UP = 5
"""IB_PORT_PHYS_STATE_LINK_UP (include/rdma/ib_verbs.h)."""

NOT_A_COUNTER = frozenset({"hw_counters/lifespan", CARRIER, FLAGS})
"""Files that stand among counters and are none: `lifespan` sets how many ms core/sysfs.c keeps
what it has read."""

_OCTETS = 4  # port_*_data count units of four octets


def _error(
    name: str,
    metric: str,
    bits: int,
    tier: Tier = "rare",
    meaning: Meaning | None = None,
    lag_ns: int = 0,
) -> Counter:
    return Counter(f"counters/{name}", metric, tier, bits, "stops", meaning=meaning, lag_ns=lag_ns)


def _traffic(name: str, metric: str, tier: Tier = "rare", scale: int = 1) -> Counter:
    """64 bits in the extended sets, 32 in the classic one, and the files do not tell which."""
    return Counter(
        f"counters/{name}", metric, tier, 64, "unknown", scale, "traffic", meaning="traffic"
    )


def _wraps_at_32(
    name: str,
    metric: str,
    tier: Tier = "fast",
    klass: Class = "error",
    meaning: Meaning | None = None,
    lag_ns: int = 0,
) -> Counter:
    return Counter(name, metric, tier, 32, klass=klass, meaning=meaning, lag_ns=lag_ns)


PORT_COUNTERS = (
    _error("link_downed", "link_downed", 8, "fast", "link_down", lag_ns=SECOND_NS),
    _error("symbol_error", "symbol_error", 16, "slow"),
    _error("link_error_recovery", "link_error_recovery", 8, "slow"),
    _error("port_rcv_errors", "port_errors_received", 16),
    _error("port_rcv_remote_physical_errors", "port_receive_remote_physical_errors", 16),
    _error("port_rcv_switch_relay_errors", "port_receive_switch_relay_errors", 16),
    _error("port_xmit_discards", "port_discards_transmitted", 16, meaning="discard"),
    _error("port_xmit_constraint_errors", "port_constraint_errors_transmitted", 8),
    _error("port_rcv_constraint_errors", "port_constraint_errors_received", 8),
    _error("local_link_integrity_errors", "local_link_integrity_errors", 4),
    _error("excessive_buffer_overrun_errors", "excessive_buffer_overrun_errors", 4),
    _error("VL15_dropped", "vl15_dropped", 16),
    _error("port_xmit_wait", "port_transmit_wait", 32),
    _traffic("port_xmit_data", "port_data_transmitted_bytes", "fast", _OCTETS),
    _traffic("port_rcv_data", "port_data_received_bytes", "slow", _OCTETS),
    _traffic("port_xmit_packets", "port_packets_transmitted"),
    _traffic("port_rcv_packets", "port_packets_received"),
    _traffic("unicast_xmit_packets", "unicast_packets_transmitted"),
    _traffic("unicast_rcv_packets", "unicast_packets_received"),
    _traffic("multicast_xmit_packets", "multicast_packets_transmitted"),
    _traffic("multicast_rcv_packets", "multicast_packets_received"),
    _wraps_at_32(CARRIER_DOWNS, "carrier_down_changes", meaning="link_down"),
    _wraps_at_32(CARRIER_UPS, "carrier_up_changes", klass="state"),
    _wraps_at_32(
        LINK_DOWN_EVENTS_PHY,
        "link_down_events_phy",
        "rare",
        meaning="link_down",
        lag_ns=2 * SECOND_NS,  # a second as link_downed, and one for which its reading may be older
    ),
)
