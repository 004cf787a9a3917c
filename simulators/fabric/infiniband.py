"""Infiniband: the files of an RDMA device and its ports below /class/infiniband.

The formats are those of drivers/infiniband/core/sysfs.c, as captured from a
software RDMA device. That an mlx5 device has just these files (hca_type, board_id,
hw_rev, 21 counters) is from the kernel's source: no capture of one was at hand.
"""

import errno
from collections.abc import Sequence
from fnmatch import fnmatchcase

from simulators.fabric.driver_counters import PPCNT
from simulators.fabric.node import Changes, File, Leaves, below, fixed, link, refusal, refused
from simulators.fabric.pci import pci_path
from simulators.fabric.port import SimulatedPort
from simulators.fabric.timeline import Phase

_VIRTUAL = "/devices/virtual/infiniband"
_IB_GIDS = 8
_ZERO_GID = ":".join(["0000"] * 8)
_LINK_LOCAL = "fe80:0000:0000:0000"

_ACTIVE, _LINK_UP = b"4: ACTIVE\n", b"5: LinkUp\n"
_STATES: dict[Phase, bytes] = {
    "active": _ACTIVE,
    "armed": b"3: ARMED\n",
    "init": b"2: INIT\n",
    "down": b"1: DOWN\n",
    "admin": b"1: DOWN\n",
}
_PHYSICAL_STATES: dict[Phase, bytes] = {
    "active": _LINK_UP,
    "armed": _LINK_UP,
    "init": _LINK_UP,
    "down": b"2: Polling\n",
    "admin": b"3: Disabled\n",
}

# 10 ms of RDMA_HW_STATS_DEFAULT_LIFESPAN read back from jiffies on HZ=250, as captured.
_LIFESPAN = fixed("12")


def device_path(port: SimulatedPort, name: str) -> str:
    pci = port.spec.pci
    return f"{_VIRTUAL}/{name}" if pci is None else f"{pci_path(pci)}/infiniband/{name}"


def device_files(port: SimulatedPort, name: str) -> Leaves:
    """The device's own files, under the name it has now; `port` is any of its ports."""
    spec, shape = port.spec, port.spec.shape
    path = device_path(port, name)
    device: Leaves = {
        "node_guid": fixed(spec.guid),
        "sys_image_guid": fixed(spec.guid),
        "node_type": fixed(shape.node_type),
        "node_desc": fixed(f"simulated {spec.device}"),
        "subsystem": link(f"{path}/subsystem", "/class/infiniband"),
        **{file: fixed(text) for file, text in shape.files.items()},
        **_with_lifespan(port.source.files(shape.device_counters)),
    }
    if spec.pci is not None:
        device["device"] = link(f"{path}/device", pci_path(spec.pci))
    if shape.has_parent:
        device["parent"] = _netdev_name(port)
    by_class = f"/class/infiniband/{name}"
    return {**below(path, device), by_class: link(by_class, path)}


def port_files(port: SimulatedPort) -> Leaves:
    """By path below the port's directory."""
    spec = port.spec
    files = {
        **_state_files(port),
        **_address_files(port),
        "link_layer": fixed(spec.link_layer),
        **(_ib_gids(port) if port.infiniband else _other_gids(port)),
        **_counter_files(port),
    }
    return {
        name: leaf
        for name, leaf in files.items()
        if not any(fnmatchcase(name, pattern) for pattern in spec.without)
    }


def _counter_files(port: SimulatedPort) -> Leaves:
    spec = port.spec
    files = _with_lifespan(port.source.files(spec.shape.rules(spec.link_layer)))
    refusing: Sequence[str] = ()
    if spec.shape.refuses_counters:
        refusing = [name for name in files if name.startswith("counters/")]
    elif spec.nvlink_management:
        refusing = PPCNT
    return {**files, **dict.fromkeys(refusing, refused(errno.EINVAL))}


def _with_lifespan(counters: Leaves) -> Leaves:
    """Hardware counters stand beside a setting, the life of their cache in milliseconds."""
    if any(name.startswith("hw_counters/") for name in counters):
        return {**counters, "hw_counters/lifespan": _LIFESPAN}
    return counters


def _state_files(port: SimulatedPort) -> Leaves:
    spec, phase, timeline = port.spec, port.phase, port.timeline
    if spec.state_is_constant or spec.shape.state_is_constant:
        return {
            "state": File(lambda _: _ACTIVE),
            "phys_state": File(lambda _: _LINK_UP),
            "rate": fixed(spec.rate.line),
        }
    physical = dict(_PHYSICAL_STATES)
    if not port.infiniband:
        physical["down"] = f"{spec.shape.link_lost}\n".encode()
    changes: Changes = "edges" if port.real is None else "flows"
    return {
        "state": File(lambda t: _STATES[phase(t)], changes),
        "phys_state": File(lambda t: physical[phase(t)], changes),
        "rate": File(lambda t: f"{timeline.rate(t).line}\n".encode(), "edges"),
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


def _other_gids(port: SimulatedPort) -> Leaves:
    """RoCE: link-local and IPv4 address, each for both versions; else one without netdev."""
    shape = port.spec.shape
    addresses = (
        f"{_LINK_LOCAL}:{port.spec.guid}",
        f"0000:0000:0000:0000:0000:ffff:0a00:{port.index + 1:04x}",
    )
    files = _empty_gids(shape.gids)
    for slot in range(min(4, shape.gids)):
        files[f"gids/{slot}"] = fixed(addresses[slot // 2])
        if shape.names_netdev:
            files[f"gid_attrs/ndevs/{slot}"] = _netdev_name(port)
            files[f"gid_attrs/types/{slot}"] = fixed(("IB/RoCE v1", "RoCE v2")[slot % 2])
    return files


def _netdev_name(port: SimulatedPort) -> File:
    """The name its netdev has when asked, which may be another one by then, or none."""

    def name(t_ns: int) -> bytes:
        life = port.netdev.at(t_ns)
        if life is None:
            raise refusal(errno.EINVAL)
        return f"{life.name}\n".encode()

    return File(name)


def _empty_gids(slots: int) -> Leaves:
    files: Leaves = {}
    for slot in range(slots):
        files[f"gids/{slot}"] = fixed(_ZERO_GID)
        files[f"gid_attrs/ndevs/{slot}"] = refused(errno.EINVAL)
        files[f"gid_attrs/types/{slot}"] = refused(errno.EINVAL)
    return files
