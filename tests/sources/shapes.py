"""Devices of drivers of which no capture was at hand, laid out as the kernel's source has them.

Only what discovery, plan and survey look at. The names of counters are those of
drivers/infiniband/hw/*; what they hold is made up. A file whose read gives an error is
left out, as in the captures.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from tests.trees import lay_out

PMA = (
    *("link_downed", "symbol_error", "link_error_recovery", "port_rcv_errors"),
    *("port_xmit_discards", "port_xmit_wait", "port_xmit_data", "port_rcv_data"),
)


class Device(msgspec.Struct, kw_only=True):
    """One RDMA device on a PCI function; `counters` and `hw_counters` all stand at 1."""

    name: str
    pci: str | None
    driver: str | None
    guid: str = "0000:0000:0000:0000"
    link_layers: Sequence[str] = ("Ethernet",)
    state: str = "4: ACTIVE"
    physical_state: str = "5: LinkUp"
    rate: str = "400 Gb/sec (4X NDR)"
    counters: Sequence[str] = ()
    hw_counters: Sequence[str] = ()
    netdevs: Sequence[str] = ()
    """Of the function, in the order of its ports."""
    gid_netdevs: Sequence[str] = ()
    """What the first GID of each port names."""
    node_desc: str = ""
    is_virtual: bool = False
    vpd: str | None = None

    def lay_out(self, sysfs: Path) -> None:
        directory = sysfs / "class/infiniband" / self.name
        lay_out(directory, {"node_guid": f"{self.guid}\n", "node_desc": f"{self.node_desc}\n"})
        for index, link_layer in enumerate(self.link_layers):
            lay_out(directory / "ports" / str(index + 1), self._port_files(index, link_layer))
        if self.pci is not None:
            self._lay_out_function(sysfs, directory)

    def _port_files(self, index: int, link_layer: str) -> dict[str, str]:
        files = {
            "state": self.state,
            "phys_state": self.physical_state,
            "rate": self.rate,
            "link_layer": link_layer,
        }
        files |= {f"counters/{name}": "1" for name in self.counters}
        files |= {f"hw_counters/{name}": "1" for name in self.hw_counters}
        if self.hw_counters:
            files["hw_counters/lifespan"] = "12"
        if index < len(self.gid_netdevs):
            files["gid_attrs/ndevs/0"] = self.gid_netdevs[index]
        return {name: f"{content}\n" for name, content in files.items()}

    def _lay_out_function(self, sysfs: Path, directory: Path) -> None:
        function = sysfs / "devices/pci0000:00" / str(self.pci)
        function.mkdir(parents=True)
        (directory / "device").symlink_to(function)
        if self.driver is not None:
            drivers = sysfs / "bus/pci/drivers" / self.driver
            drivers.mkdir(parents=True, exist_ok=True)
            (function / "driver").symlink_to(drivers)
        if self.is_virtual:
            (function / "physfn").symlink_to(function.with_name("0000:00:00.0"))
        if self.vpd is not None:
            (function / "vpd").write_text(self.vpd)
        for dev_port, netdev in enumerate(self.netdevs):
            lay_out_netdev(sysfs, netdev, function, dev_port)


def lay_out_netdev(sysfs: Path, name: str, function: Path | None = None, dev_port: int = 0) -> Path:
    """The files of a netdev that is up and went down once; on a PCI function or on none."""
    place = (function or sysfs / "devices/virtual") / "net" / name
    lay_out(
        place,
        {
            "dev_port": f"{dev_port}\n",
            "carrier": "1\n",
            "carrier_down_count": "1\n",
            "carrier_up_count": "1\n",
            "flags": "0x1003\n",
        },
    )
    if function is not None:
        (place / "device").symlink_to(function)
    by_class = sysfs / "class/net" / name
    by_class.parent.mkdir(parents=True, exist_ok=True)
    by_class.symlink_to(place)
    return place


def lay_out_bond(sysfs: Path, name: str, members: Sequence[str]) -> Path:
    bond = lay_out_netdev(sysfs, name)
    lay_out(bond, {"bonding/slaves": " ".join(members) + "\n"})
    return bond


BNXT_RE = Device(
    name="bnxt_re0",
    pci="0000:41:00.0",
    driver="bnxt_en",
    guid="9e6b:00ff:fe12:3450",
    hw_counters=("to_retransmits", "seq_err_naks_rcvd", "active_qps", "tx_bytes", "rx_pkts"),
    netdevs=("ens1np0",),
    gid_netdevs=("ens1np0",),
)
IRDMA = Device(
    name="rocep49s0",
    pci="0000:31:00.0",
    driver="ice",
    guid="b696:91ff:fea4:0001",
    rate="100 Gb/sec (4X EDR)",
    hw_counters=("tcpRetransSegs", "cnpHandled", "ip4OutOctets", "RxECNMrkd"),
    netdevs=("ens2",),
    gid_netdevs=("ens2",),
)
EFA = Device(
    name="rdmap16s27",
    pci="0000:10:1b.0",
    driver="efa",
    link_layers=("Unknown",),
    rate="100 Gb/sec (4X EDR)",
    hw_counters=("tx_bytes", "rx_drops", "retrans_pkts", "retrans_timeout_events"),
)
HFI1 = Device(
    name="hfi1_0",
    pci="0000:18:00.0",
    driver="hfi1",
    guid="0011:7501:0174:1234",
    link_layers=("InfiniBand",),
    rate="100 Gb/sec (4X EDR)",
    counters=PMA,
    hw_counters=("SwLinkDown,32", "SwLinkUp,32", "RcTimeOut", "RcResend", "RxHdrOvr"),
    netdevs=("ibp24s0",),
)
MLX4_IB = Device(
    name="mlx4_0",
    pci="0000:04:00.0",
    driver="mlx4_core",
    guid="0002:c903:0031:2340",
    link_layers=("InfiniBand", "InfiniBand"),
    rate="56 Gb/sec (4X FDR)",
    counters=PMA,
    hw_counters=("sq_num_to", "rq_num_dup"),
    netdevs=("ib0", "ib1"),
)
MLX4_ROCE = Device(
    name="mlx4_1",
    pci="0000:05:00.0",
    driver="mlx4_core",
    guid="0002:c903:0031:2350",
    link_layers=("Ethernet", "Ethernet"),
    rate="40 Gb/sec (4X FDR10)",
    counters=PMA,
    netdevs=("ens4", "ens4d1"),
    gid_netdevs=("ens4", "ens4d1"),
)
MLX5_BOND = Device(
    name="mlx5_bond_0",
    pci="0000:98:00.0",
    driver="mlx5_core",
    guid="946d:ae03:0068:1000",
    counters=PMA,
    hw_counters=("rx_write_requests", "local_ack_timeout_err"),
    netdevs=("ens5f0np0",),
    gid_netdevs=("bond0",),
)
MLX5_VF = Device(
    name="mlx5_9",
    pci="0000:98:00.3",
    driver="mlx5_core",
    guid="946d:ae03:0068:1003",
    link_layers=("InfiniBand",),
    counters=PMA,
    hw_counters=("vport_out_of_sequence",),
    is_virtual=True,
)
NVLINK_LPF = Device(
    name="mlx5_4",
    pci="0000:5c:00.0",
    driver="mlx5_core",
    guid="7c8c:0903:00f1:0040",
    link_layers=("InfiniBand",),
    counters=PMA,
    vpd="\x82\x1fNVIDIA ConnectX-7 management\x90SW_MNG\x78",
)
QEDR = Device(
    name="qedr0",
    pci="0000:65:00.0",
    driver="qede",
    guid="0014:02ff:feec:1234",
    rate="25 Gb/sec (1X EDR)",
    netdevs=("ens6f0",),
)
MANA = Device(
    name="mana_0",
    pci="7870:00:00.0",
    driver="mana",
    guid="0200:00ff:fe00:0001",
    rate="200 Gb/sec (4X HDR)",
    hw_counters=("requester_timeout", "current_rate", "tx_bytes"),
    netdevs=("eth1",),
    gid_netdevs=("eth1",),
)
ERDMA = Device(
    name="erdma_0",
    pci="0000:00:07.0",
    driver="erdma",
    guid="0216:3eff:fe00:0007",
    rate="25 Gb/sec (1X EDR)",
    hw_counters=("tx_bytes_cnt", "rx_pps_limit_drop_cnt", "connect_timeout_cnt"),
    gid_netdevs=("eth5",),
)
HNS = Device(
    name="hns_0",
    pci="0000:7d:00.0",
    driver="hns3",
    guid="0218:2dff:fe01:0203",
    rate="100 Gb/sec (4X EDR)",
    hw_counters=("rx_cnp_pkt", "tx_pkt", "tx_err_pkt"),
    netdevs=("enp125s0f0",),
    gid_netdevs=("enp125s0f0",),
)
