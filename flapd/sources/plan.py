"""The reading plan of a port: which files, how often, by the catalogue."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from sys import intern
from typing import get_args

import msgspec

from flapd.core.fabric.catalogue import (
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    FLAGS,
    LINK_DOWNED,
    NOT_A_COUNTER,
    PHYSICAL_STATE,
    RATE_FILE,
    STATE,
    Tier,
    commands_of,
    driver_of,
    refreshes_the_rest,
    tier_of,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.discovery import netdev_directory, port_directory
from flapd.sources.files import list_names

TIERS: tuple[Tier, ...] = get_args(Tier)
STATE_FILES = (STATE, PHYSICAL_STATE)
CARRIER_COUNTS = (CARRIER_DOWNS, CARRIER_UPS)
_MOST_FILES_A_DIRECTORY = 256
_READ_WITH_OTHERS = {*STATE_FILES, CARRIER, FLAGS}
"""Files of no tier: they are read where what was seen in others asks for it."""


class Plan(msgspec.Struct, frozen=True):
    """Names of files by tier, and where each lies."""

    paths: dict[str, Path]
    tiers: dict[Tier, tuple[str, ...]]
    link_counts: tuple[str, ...]
    """The witness, and what counts the ups with it."""
    state_tier: Tier
    """On which the state is read; more often after the link moved."""


def remembered(plan: Plan, tier: Tier) -> tuple[str, ...]:
    """Files whose values a row of this tier can hold: the movement of a link has more read."""
    also = (*plan.link_counts, *STATE_FILES, CARRIER, FLAGS, RATE_FILE)
    there = (name for name in also if name in plan.paths)
    return tuple(dict.fromkeys((*plan.tiers[tier], *there)))


def plan_of(sysfs: Path, port: Port) -> Plan:
    """Everything of this port that is worth reading; of a bond's member its netdev alone."""
    paths = _netdev_paths(sysfs, port)
    if port.member is None:
        paths |= _port_paths(port_directory(sysfs, port))
    tiers: dict[Tier, list[str]] = {"fast": [], "slow": [], "rare": []}
    for name in paths:
        if name not in _READ_WITH_OTHERS:
            tiers[_tier(name, port)].append(name)
    tiers["fast"].sort(key=lambda name: (name != port.witness, not name.startswith("net/")))
    tiers["slow"].sort(key=lambda name: not refreshes_the_rest(port.driver, name))
    return Plan(
        paths=paths,
        tiers={tier: tuple(names) for tier, names in tiers.items()},
        link_counts=tuple(name for name in (port.witness, CARRIER_UPS) if name in paths),
        state_tier=_state_tier(port),
    )


def _port_paths(directory: Path) -> dict[str, Path]:
    paths = {name: directory / name for name in (*STATE_FILES, RATE_FILE)}
    for group in ("hw_counters", "counters"):
        for file in list_names(directory / group)[:_MOST_FILES_A_DIRECTORY]:
            name = intern(f"{group}/{file}")  # one in memory for all ports, and so in the cache
            if name not in NOT_A_COUNTER:
                paths[name] = directory / name
    return paths


def _netdev_paths(sysfs: Path, port: Port) -> dict[str, Path]:
    """The netdev of an InfiniBand port is up or down for reasons of its own."""
    if port.netdev is None or port.link_layer == "InfiniBand":
        return {}
    told_by_carrier = (*CARRIER_COUNTS, CARRIER) if port.witness == CARRIER_DOWNS else ()
    directory = netdev_directory(sysfs, port.netdev)
    names = [*told_by_carrier, FLAGS] if (directory / "flags").exists() else told_by_carrier
    return {name: directory / name.removeprefix("net/") for name in names}


def commands_per_second(
    port: Port,
    files: Mapping[Tier, Sequence[str]],
    intervals_ns: Mapping[Tier, int],
    *,
    at_once: bool = False,
) -> dict[Tier, float]:
    """What it asks of the firmware to read these files so often.

    `at_once`: netlink tells all the hardware counters.
    """
    return {
        tier: commands_of(port.driver, port.link_layer, names, at_once=at_once)
        * SECOND_NS
        / intervals_ns[tier]
        for tier, names in files.items()
    }


def _state_tier(port: Port) -> Tier:
    """Not often where it takes the lock of all network configuration, and adds nothing."""
    takes_lock = driver_of(port.driver).state_takes_rtnl
    return "rare" if takes_lock and port.witness == CARRIER_DOWNS else "slow"


def _tier(name: str, port: Port) -> Tier:
    """A counter of downs that is not the one to count by need not be read fast."""
    if name == port.witness:
        return "fast"
    return "rare" if name == LINK_DOWNED else tier_of(name)
