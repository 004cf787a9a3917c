"""Driver: what an RDMA driver does that others do not, and what reading from it costs.

Sources, all of Linux 6.12: drivers/infiniband/core/{sysfs,verbs,uverbs_main,nldev}.c and
the driver's query_port, process_mad, get_hw_stats and disassociate_ucontext.
"""

import msgspec

from flapd.core.fabric.catalogue.port_files import SW_LINK_DOWN

_INFINIBAND_ONLY = frozenset({"InfiniBand"})


class Driver(msgspec.Struct, frozen=True):
    """Costs are commands of the firmware; the defaults are those of a driver nobody knows."""

    name: str
    state_commands: int = 1
    """One query of an InfiniBand port: each read of state, phys_state or rate, or a PORT_GET."""
    ethernet_state_commands: int = 1
    state_takes_rtnl: bool = False
    """Such a query waits for the lock that all network configuration of the node takes."""
    state_is_constant: bool = False
    """It says ACTIVE whatever the link does."""
    pma_commands: int = 1
    """One read of a file in counters/."""
    refresh_commands: int = 1
    """One refresh of all of hw_counters/, or a STAT_GET."""
    refreshed_by: str | None = None
    """The only file whose read keeps what it refreshed for the others, for 10 ms (core/sysfs.c:
    update_hw_stats); None = that of any does."""
    statistics_commands: int = 1
    """One reading of its netdev's statistics (ethtool -S), whatever of them is wanted."""
    ipoib_statistics_commands: int = 1
    counts_link_downed_on: frozenset[str] = _INFINIBAND_ONLY
    """Link layers on which counters/link_downed counts downs."""
    own_witness: str | None = None
    """A counter of downs that only this driver has, better than link_downed."""
    transmitted: tuple[str, ...] = ()
    """Counters of what the port sent, for want of port_xmit_data; the best first."""
    disassociates: bool = False
    """A device can be removed while somebody holds a verbs context on it."""
    freezes: bool = False
    """After one failed command its hardware counters stand still and their reads succeed."""


_NOTHING = frozenset[str]()

_DRIVERS = (
    Driver(
        "mlx5",
        state_commands=5,  # QUERY_HCA_VPORT_CONTEXT, PTYS, PMTU twice, PVLC
        ethernet_state_commands=2,  # PTYS, QUERY_NIC_VPORT_CONTEXT
        refresh_commands=3,  # QUERY_Q_COUNTER, PPCNT, QUERY_CONG_STATISTICS
        refreshed_by="hw_counters/rx_write_requests",  # hw/mlx5/counters.c: mlx5_ib_get_hw_stats
        # mlx5/core/en_stats.c: some thirty groups of registers, of which ipoib/ethtool.c has nine
        statistics_commands=40,
        ipoib_statistics_commands=10,
        disassociates=True,
    ),
    Driver("mlx4", state_commands=2, disassociates=True),
    Driver(
        "bnxt_re",
        ethernet_state_commands=0,
        state_takes_rtnl=True,
        refresh_commands=2,
        transmitted=("hw_counters/tx_bytes",),
        disassociates=True,
        freezes=True,
    ),
    Driver(
        "irdma",
        ethernet_state_commands=0,
        state_takes_rtnl=True,
        transmitted=("hw_counters/ip4OutOctets", "hw_counters/ip6OutOctets"),
        disassociates=True,
        freezes=True,
    ),
    Driver(
        "efa",
        state_commands=0,
        ethernet_state_commands=0,
        state_is_constant=True,
        refresh_commands=5,  # GET_STATS: basic, messages, read, write, network
        transmitted=("hw_counters/tx_bytes",),
    ),
    Driver(
        "mana",
        ethernet_state_commands=0,
        state_takes_rtnl=True,
        transmitted=("hw_counters/tx_bytes",),
        disassociates=True,
    ),
    Driver(
        "hns",
        ethernet_state_commands=0,
        state_takes_rtnl=True,
        transmitted=("hw_counters/tx_pkt",),
        disassociates=True,
    ),
    Driver(
        "erdma",
        ethernet_state_commands=0,
        state_takes_rtnl=True,
        transmitted=("hw_counters/tx_bytes_cnt", "hw_counters/hw_tx_bytes_cnt"),
        disassociates=True,
    ),
    Driver(
        "rxe",
        ethernet_state_commands=0,
        state_takes_rtnl=True,
        pma_commands=0,
        refresh_commands=0,
        counts_link_downed_on=_NOTHING,
        transmitted=("hw_counters/sent_pkts",),
    ),
    Driver("siw", ethernet_state_commands=0, state_takes_rtnl=True, refresh_commands=0),
    Driver(
        "hfi1",
        state_commands=0,
        pma_commands=0,
        refresh_commands=0,
        own_witness=SW_LINK_DOWN,
    ),
    Driver("qib", state_commands=0, pma_commands=0),
    Driver("mthca"),
    Driver("ocrdma", counts_link_downed_on=_NOTHING),
    Driver("qedr", ethernet_state_commands=0, pma_commands=0, counts_link_downed_on=_NOTHING),
    Driver("cxgb4", ethernet_state_commands=0, state_takes_rtnl=True),
)
_BY_NAME = {driver.name: driver for driver in _DRIVERS}

_KERNEL_NAMES = {
    "mlx5_core": "mlx5",
    "mlx5_core.sf": "mlx5",
    "mlx4_core": "mlx4",
    "bnxt_en": "bnxt_re",
    "ice": "irdma",
    "i40e": "irdma",
    "idpf": "irdma",
    "hns3": "hns",
    "rdma_rxe": "rxe",
    "ib_qib": "qib",
    "ib_mthca": "mthca",
    "be2net": "ocrdma",
    "qede": "qedr",
}
"""The driver that the device is bound to -> the RDMA driver that sits upon it."""

_UNKNOWN = Driver("unknown", state_takes_rtnl=True)


def driver_of(name: str | None) -> Driver:
    """By the name of the RDMA driver or of the one that the device is bound to."""
    if name is None:
        return _UNKNOWN
    return _BY_NAME.get(_KERNEL_NAMES.get(name, name), _UNKNOWN)


def state_is_constant(name: str | None) -> bool:
    """Whether this driver says the same state whatever the link does."""
    return driver_of(name).state_is_constant
