"""Commands: what reading asks of the firmware of eight HCAs, by the catalogue's cost of a read.

mlx5 on InfiniBand, at the default intervals, while no link moves; beside it what it would cost
to read every file ten times a second, as exporters do more seldom.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from flapd.core.fabric.catalogue import Tier, commands_of, statistics_commands_of
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.discovery import devices_of, port_directory, ports_of_device
from flapd.sources.netlink_port import NetlinkPort
from flapd.sources.plan import TIERS, commands_per_second, plan_of
from flapd.sources.port_reader import PortReader
from flapd.sources.rdma_netlink import RdmaNetlink
from flapd.sources.sampler import COMMANDS_PER_SECOND, COMMANDS_PER_SECOND_BY_NETLINK
from flapd.sources.settings import PortsSettings, SamplingSettings
from simulators.fabric.spec import PortSpec, Spec
from tests.bench.figure import Figure, Scale
from tests.bench.machine import memory_directory
from tests.sources.made_up_rdma import MadeUpRdma
from tests.system.harness import SimulatedNode, simulated_fabric

HCAS = 8
_SAMPLING = SamplingSettings()
_INTERVALS_NS: Mapping[Tier, int] = {
    "fast": _SAMPLING.interval.ns,
    "slow": _SAMPLING.slow_interval.ns,
    "rare": _SAMPLING.rare_interval.ns,
}
_DESIGNED: Mapping[Tier, int] = {"fast": 2, "slow": 11, "rare": 25}
"""Commands a port and sweep, for which the intervals were chosen; of what is rare about so many."""


def commands(scale: Scale) -> list[Figure]:
    with memory_directory() as directory:
        node = SimulatedNode(directory)
        with simulated_fabric(node, _eight_hcas(), 0.0, "--plain"):
            ports = list(_ports_of(node.sysfs))
            naive = sum(_naive(node.sysfs, port) for port in ports)
            by_files = _by_tier(node.sysfs, ports, netlink=False)
            by_netlink = _by_tier(node.sysfs, ports, netlink=True)
    return [
        *(_of_tier(tier, by_netlink[tier]) for tier in TIERS),
        _total("netlink and files", by_netlink, COMMANDS_PER_SECOND_BY_NETLINK, naive),
        _total("files alone", by_files, COMMANDS_PER_SECOND, naive),
    ]


def _eight_hcas() -> Spec:
    return Spec(
        tuple(
            PortSpec(
                device=f"mlx5_{index}",
                link_layer="InfiniBand",
                netdev=f"ib{index}",
                guid=f"b83f:d203:0012:{index:04x}",
                pci=f"0000:{index + 16:02x}:00.0",
            )
            for index in range(HCAS)
        )
    )


def _ports_of(sysfs: Path) -> Iterator[Port]:
    for device in devices_of(sysfs):
        yield from ports_of_device(sysfs, device, PortsSettings())


def _by_tier(sysfs: Path, ports: list[Port], *, netlink: bool) -> dict[Tier, float]:
    """Commands a second, of all of them."""
    total: dict[Tier, float] = dict.fromkeys(TIERS, 0.0)
    for port in ports:
        reader = PortReader(
            port, plan_of(sysfs, port), netlink=_netlink_of(sysfs, port) if netlink else None
        )
        for tier in TIERS:
            reader.sweep(tier)
        files, at_once = reader.files_at_rest(closely=False), reader.counters_by_netlink
        assert at_once is netlink
        for tier, cost in commands_per_second(port, files, _INTERVALS_NS, at_once=at_once).items():
            total[tier] += cost
        statistics = statistics_commands_of(port.driver, port.link_layer)
        total["rare"] += statistics * SECOND_NS / _INTERVALS_NS["rare"]
        reader.close()
    return total


def _netlink_of(sysfs: Path, port: Port) -> NetlinkPort:
    assert port.guid is not None
    files = (port_directory(sysfs, port) / "hw_counters").iterdir()
    counters = {file.name: 0 for file in files if file.name != "lifespan"}
    kernel = MadeUpRdma(counters, port.guid, port.device)
    return NetlinkPort(RdmaNetlink(kernel), port.device, port.guid, port.number)


def _naive(sysfs: Path, port: Port) -> float:
    """Each file for itself, in the order of their names, on each fast sweep."""
    names = plan_of(sysfs, port).paths
    each = sum(commands_of(port.driver, port.link_layer, [name]) for name in names)
    return each * SECOND_NS / _INTERVALS_NS["fast"]


def _of_tier(tier: Tier, value: float) -> Figure:
    sweeps = HCAS * SECOND_NS / _INTERVALS_NS[tier]
    return Figure(
        what=f"firmware commands, {HCAS} HCAs, {tier} tier",
        unit="/s",
        value=value,
        budget=None,
        floor=f"design {_DESIGNED[tier] * sweeps:.3g}/s",
        note=f"{value / sweeps:.3g} a port and sweep, {_DESIGNED[tier]} by design",
    )


def _total(by: str, of_tiers: Mapping[Tier, float], budget: int, naive: float) -> Figure:
    return Figure(
        what=f"firmware commands, {HCAS} HCAs, by {by}",
        unit="/s",
        value=sum(of_tiers.values()),
        budget=budget,
        note=f"every file at every fast sweep: {naive:,.0f}/s",
    )
