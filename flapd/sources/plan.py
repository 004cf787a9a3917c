"""The reading plan of a port: which files, how often, by the catalogue."""

from pathlib import Path

import msgspec

from flapd.core.fabric.catalogue import (
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    LINK_DOWNED,
    NOT_A_COUNTER,
    PHYSICAL_STATE,
    REFRESHES_THE_REST,
    STATE,
    Tier,
    tier_of,
)
from flapd.core.fabric.parse import RATE_FILE
from flapd.model.port import Port
from flapd.sources.discovery import netdev_directory, port_directory
from flapd.sources.files import list_names

STATE_FILES = (STATE, PHYSICAL_STATE)
_MOST_FILES_A_DIRECTORY = 256


class Plan(msgspec.Struct, frozen=True):
    """Names of files by tier, and where each lies."""

    paths: dict[str, Path]
    tiers: dict[Tier, tuple[str, ...]]


def remembered(plan: Plan, tier: Tier) -> tuple[str, ...]:
    """Files whose values a row of this tier can hold: a sweep may read the state as well."""
    carrier = (CARRIER, CARRIER_DOWNS, CARRIER_UPS)
    also = {"fast": (*STATE_FILES, CARRIER), "slow": STATE_FILES, "rare": carrier}
    return (*plan.tiers[tier], *also[tier])


def plan_of(sysfs: Path, port: Port) -> Plan:
    """Everything of this port that is worth reading."""
    directory = port_directory(sysfs, port)
    paths = {name: directory / name for name in (*STATE_FILES, RATE_FILE)}
    for group in ("hw_counters", "counters"):
        for file in list_names(directory / group)[:_MOST_FILES_A_DIRECTORY]:
            name = f"{group}/{file}"
            if name not in NOT_A_COUNTER:
                paths[name] = directory / name
    if port.witness == CARRIER_DOWNS and port.netdev is not None:
        netdev = netdev_directory(sysfs, port.netdev)
        for name in (CARRIER_DOWNS, CARRIER_UPS):
            paths[name] = netdev / name.removeprefix("net/")
    tiers: dict[Tier, list[str]] = {"fast": [], "slow": [], "rare": []}
    for name in paths:
        if name not in STATE_FILES:
            tiers[_tier(name, port)].append(name)
    tiers["fast"].sort(key=lambda name: (name != port.witness, not name.startswith("net/")))
    tiers["slow"].sort(key=lambda name: name != REFRESHES_THE_REST)
    return Plan(paths, {tier: tuple(names) for tier, names in tiers.items()})


def _tier(name: str, port: Port) -> Tier:
    """A counter of downs that is not the one to count by need not be read fast."""
    return "rare" if name == LINK_DOWNED and name != port.witness else tier_of(name)
