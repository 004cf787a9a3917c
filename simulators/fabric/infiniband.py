"""InfiniBand: the files of an RDMA device and its port below /class/infiniband.

The formats are those of drivers/infiniband/core/sysfs.c, as captured from a
software RDMA device. That an mlx5 device has just these files (hca_type, board_id,
hw_rev, 21 counters) is from the kernel's source: no capture of one was at hand.
"""

import errno

from simulators.fabric.counters import counter_files
from simulators.fabric.node import File, Leaves, below, fixed, link, refused
from simulators.fabric.port import SimulatedPort
from simulators.fabric.schedule import Phase

_SPEEDS = {100: "EDR", 200: "HDR", 400: "NDR", 800: "XDR"}
_IB_GIDS = 8
_ROCE_GIDS = 16
_ZERO_GID = ":".join(["0000"] * 8)
_LINK_LOCAL = "fe80:0000:0000:0000"

# hw/mlx5: an InfiniBand link trains (Polling); Ethernet knows carrier or none (Disabled).
_STATES: dict[Phase, bytes] = {
    "active": b"4: ACTIVE\n",
    "subnet": b"2: INIT\n",
    "down": b"1: DOWN\n",
}
_PHYSICAL_STATES: dict[Phase, bytes] = {
    "active": b"5: LinkUp\n",
    "subnet": b"5: LinkUp\n",
    "down": b"2: Polling\n",
}
_ETHERNET_PHYSICAL_STATES: dict[Phase, bytes] = {**_PHYSICAL_STATES, "down": b"3: Disabled\n"}


def device_files(port: SimulatedPort) -> Leaves:
    path = port.device_path
    guid = fixed(port.spec.guid)
    device: Leaves = {
        "node_guid": guid,
        "sys_image_guid": guid,
        "node_type": fixed("1: CA"),
        "node_desc": fixed(f"simulated {port.spec.device}"),
        "fw_ver": fixed("28.43.1014"),
        "hca_type": fixed("MT4129"),
        "board_id": fixed("MT_0000000838"),
        "hw_rev": fixed("0"),
        "device": link(f"{path}/device", port.pci_path),
        "subsystem": link(f"{path}/subsystem", "/class/infiniband"),
    }
    by_class = f"/class/infiniband/{port.spec.device}"
    return {
        **below(path, device),
        **below(f"{path}/ports/1", _port_files(port)),
        by_class: link(by_class, path),
    }


def _port_files(port: SimulatedPort) -> Leaves:
    spec = port.spec
    return {
        **_state_files(port),
        **_address_files(port),
        "rate": fixed(f"{spec.rate_gbps} Gb/sec (4X {_SPEEDS[spec.rate_gbps]})"),
        "link_layer": fixed(spec.link_layer),
        **(_ib_gids(port) if port.infiniband else _roce_gids(port)),
        **counter_files(port.timeline, spec.link_layer, spec.bytes_per_second, spec.initial),
    }


def _state_files(port: SimulatedPort) -> Leaves:
    phase = port.timeline.phase
    physical = _PHYSICAL_STATES if port.infiniband else _ETHERNET_PHYSICAL_STATES
    return {
        "state": File(lambda t_ns: _STATES[phase(t_ns)], "edges"),
        "phys_state": File(lambda t_ns: physical[phase(t_ns)], "edges"),
    }


def _address_files(port: SimulatedPort) -> Leaves:
    lid, sm_lid = (port.index + 2, 1) if port.infiniband else (0, 0)
    return {
        "lid": fixed(f"0x{lid:x}"),
        "sm_lid": fixed(f"0x{sm_lid:x}"),
        "lid_mask_count": fixed("0"),
        "sm_sl": fixed("0"),
        "cap_mask": fixed("0xa651e848" if port.infiniband else "0x04010000"),
        "pkeys/0": fixed("0xffff"),
        "pkeys/1": fixed("0x0000"),
    }


def _ib_gids(port: SimulatedPort) -> Leaves:
    return {
        **_empty_gids(_IB_GIDS),
        "gids/0": fixed(f"{_LINK_LOCAL}:{port.spec.guid}"),
        "gid_attrs/types/0": fixed("IB/RoCE v1"),
    }


def _roce_gids(port: SimulatedPort) -> Leaves:
    """Link-local and IPv4 address, each for both RoCE versions."""
    addresses = (
        f"{_LINK_LOCAL}:{port.spec.guid}",
        f"0000:0000:0000:0000:0000:ffff:0a00:{port.index + 1:04x}",
    )
    files = _empty_gids(_ROCE_GIDS)
    for slot in range(4):
        files[f"gids/{slot}"] = fixed(addresses[slot // 2])
        files[f"gid_attrs/ndevs/{slot}"] = fixed(port.spec.netdev)
        files[f"gid_attrs/types/{slot}"] = fixed(("IB/RoCE v1", "RoCE v2")[slot % 2])
    return files


def _empty_gids(slots: int) -> Leaves:
    files: Leaves = {}
    for slot in range(slots):
        files[f"gids/{slot}"] = fixed(_ZERO_GID)
        files[f"gid_attrs/ndevs/{slot}"] = refused(errno.EINVAL)
        files[f"gid_attrs/types/{slot}"] = refused(errno.EINVAL)
    return files
