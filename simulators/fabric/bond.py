"""Bond: the files of a bond's netdev and of those that are its members.

Names and forms: drivers/net/bonding/bond_sysfs.c and bond_sysfs_slave.c (802.3ad); the
links between them: net/core/dev.c (netdev_adjacent_sysfs_add), which names both ends.
"""

from collections.abc import Sequence

from simulators.fabric.counters import CARRIER_DOWNS, CARRIER_RULES
from simulators.fabric.netdev import Netdev, netdev_files
from simulators.fabric.node import Changes, File, Leaves, below, decimal, fixed, link
from simulators.fabric.timeline import Timeline

_EDGES: Changes = "edges"


def bond_files(bond: Netdev, members: Sequence[Netdev]) -> Leaves:
    """The bond's own, below /devices/virtual, and what makes its members its members."""
    names = " ".join(member.name for member in members)
    own: Leaves = {
        "bonding/slaves": fixed(names),
        "bonding/mode": fixed("802.3ad 4"),
        "bonding/miimon": fixed("100"),
        "bonding/mii_status": _mii_status(bond.source.timeline),
    }
    own |= {
        f"lower_{member.name}": link(f"{bond.path}/lower_{member.name}", member.path)
        for member in members
    }
    leaves = {**netdev_files(bond), **below(bond.path, own)}
    for member in members:
        leaves |= netdev_files(member) | _member_files(member, bond)
    return leaves


def _member_files(member: Netdev, bond: Netdev) -> Leaves:
    failures = member.source.counter(CARRIER_DOWNS, CARRIER_RULES[CARRIER_DOWNS])
    files: Leaves = {
        "master": link(f"{member.path}/master", bond.path),
        f"upper_{bond.name}": link(f"{member.path}/upper_{bond.name}", bond.path),
        "bonding_slave/state": fixed("active"),
        "bonding_slave/mii_status": _mii_status(member.source.timeline),
        "bonding_slave/link_failure_count": decimal(failures.value, _EDGES),
    }
    return below(member.path, files)


def _mii_status(timeline: Timeline) -> File:
    return File(lambda t: b"up\n" if timeline.phase(t) == "active" else b"down\n", _EDGES)
