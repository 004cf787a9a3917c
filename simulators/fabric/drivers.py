"""Drivers as data: which files a device of each has, and how its ports show what happens.

Sources: drivers/infiniband/core/sysfs.c for the forms, drivers/infiniband/hw and sw for
what each driver gives. Ethernet ports know carrier or none and never train: their
physical state while down is Disabled, but for rxe.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from simulators.fabric.driver_counters import (
    BNXT_RE,
    EFA,
    EFA_DEVICE,
    ERDMA,
    HFI1,
    HFI1_DEVICE,
    HNS,
    IRDMA,
    MANA,
    MANA_DEVICE,
    MLX4,
    MLX5,
    PMA,
    PMA_WITHOUT_DOWNS,
    RXE,
    Rules,
    merged,
)

LinkLayer = Literal["InfiniBand", "Ethernet", "Unknown"]
DriverName = Literal[
    "mlx5",
    "mlx4",
    "bnxt_re",
    "irdma",
    "efa",
    "hfi1",
    "qedr",
    "rxe",
    "siw",
    "mana",
    "erdma",
    "hns",
]
DRIVER_NAMES: tuple[DriverName, ...] = get_args(DriverName)

_CA, _RNIC, _UNSPECIFIED = "1: CA", "4: RNIC", "7: unspecified"
_POLLING, _DISABLED = "2: Polling", "3: Disabled"


@dataclass(frozen=True)
class Driver:
    """`counters` holds, by link layer, the counters below a port's directory."""

    counters: Mapping[LinkLayer, Rules]
    kernel: str | None
    """Where `device/driver` leads to; None: a software device, without a PCI function."""
    vendor: str = ""
    product: str = ""
    node_type: str = _CA
    files: Mapping[str, str] = field(default_factory=dict)
    """Files of the device beyond what each device has."""
    device_counters: Rules = field(default_factory=dict)
    refuses_counters: bool = False
    """Files below `counters/` are there and each read of one gives EINVAL."""
    link_lost: str = _DISABLED
    """Physical state of an Ethernet port without carrier."""
    state_is_constant: bool = False
    names_netdev: bool = True
    """The GIDs of its Ethernet ports name their netdev."""
    has_parent: bool = False
    """A file `parent` names its netdev."""
    gids: int = 16

    def rules(self, link_layer: LinkLayer) -> Rules:
        return self.counters[link_layer]


def _mellanox(kernel: str, product: str, rules: Rules, files: Mapping[str, str]) -> Driver:
    return Driver(
        {"InfiniBand": merged(PMA, rules), "Ethernet": merged(PMA_WITHOUT_DOWNS, rules)},
        kernel,
        "0x15b3",
        product,
        files={"hw_rev": "0", **files},
    )


DRIVERS: Mapping[DriverName, Driver] = {
    "mlx5": _mellanox(
        "mlx5_core",
        "0x1021",
        MLX5,
        {"fw_ver": "28.43.1014", "hca_type": "MT4129", "board_id": "MT_0000000838"},
    ),
    "mlx4": _mellanox(
        "mlx4_core",
        "0x1007",
        MLX4,
        {"fw_ver": "2.42.5000", "hca_type": "MT4103", "board_id": "MT_1090111019"},
    ),
    "bnxt_re": Driver(
        {"Ethernet": BNXT_RE},
        "bnxt_en",
        "0x14e4",
        "0x1760",
        files={"fw_ver": "233.0.152.2", "hw_rev": "0x1760", "hca_type": "0x1760"},
        gids=32,
    ),
    "irdma": Driver({"Ethernet": IRDMA}, "ice", "0x8086", "0x1592", files={"fw_ver": "1.68"}),
    "efa": Driver(
        {"Unknown": EFA},
        "efa",
        "0x1d0f",
        "0xefa2",
        _UNSPECIFIED,
        files={"fw_ver": "0.0.0.0"},
        device_counters=EFA_DEVICE,
        state_is_constant=True,
        names_netdev=False,
        gids=1,
    ),
    "hfi1": Driver(
        {"InfiniBand": merged(PMA, HFI1)},
        "hfi1",
        "0x8086",
        "0x24f0",
        files={"fw_ver": "1.27.0", "boardversion": "ChipABI 3.0, ChipRev 7.17, SW Compat 3"},
        device_counters=HFI1_DEVICE,
    ),
    "qedr": Driver(
        {"Ethernet": PMA_WITHOUT_DOWNS},
        "qede",
        "0x1077",
        "0x1656",
        files={"fw_ver": "8.59.1.0", "hw_rev": "0x0", "hca_type": "FastLinQ QL45000"},
        refuses_counters=True,
    ),
    "rxe": Driver(
        {"Ethernet": RXE},
        None,
        files={"fw_ver": ""},
        link_lost=_POLLING,
        has_parent=True,
    ),
    "siw": Driver(
        {"Ethernet": {}},
        None,
        node_type=_RNIC,
        files={"fw_ver": ""},
        names_netdev=False,
        gids=1,
    ),
    "mana": Driver(
        {"Ethernet": MANA},
        "mana",
        "0x1414",
        "0x00ba",
        files={"fw_ver": "0.0.0"},
        device_counters=MANA_DEVICE,
    ),
    "erdma": Driver(
        {"Ethernet": ERDMA},
        "erdma",
        "0x1ded",
        "0x107f",
        node_type=_RNIC,
        files={"fw_ver": "2.0.0"},
        names_netdev=False,
        gids=1,
    ),
    "hns": Driver({"Ethernet": HNS}, "hns3", "0x19e5", "0xa222", files={"fw_ver": "1.0.0"}),
}
