"""Lookup: the catalogue asked by the name of a file, and where that matters of a driver."""

from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from flapd.core.fabric.catalogue.counter import Counter, Tier
from flapd.core.fabric.catalogue.driver import driver_of
from flapd.core.fabric.catalogue.hardware import HARDWARE_COUNTERS
from flapd.core.fabric.catalogue.port_files import (
    CARRIER_DOWNS,
    LINK_DOWN_EVENTS_PHY,
    LINK_DOWNED,
    PHYSICAL_STATE,
    PORT_COUNTERS,
    RATE_FILE,
    STATE,
    SW_LINK_DOWN,
)

WITNESSES = (CARRIER_DOWNS, SW_LINK_DOWN, LINK_DOWNED, LINK_DOWN_EVENTS_PHY)
"""All counters of downs."""

_XMIT_DATA = "counters/port_xmit_data"
_HARDWARE = "hw_counters/"
_REPRESENTOR = f"{_HARDWARE}vport_"
_QUERIES = {STATE, PHYSICAL_STATE, RATE_FILE}

_PORT = {counter.name: counter for counter in PORT_COUNTERS}
_OF_DRIVER: dict[str, dict[str, Counter]] = {
    driver: _PORT | {counter.name: counter for counter in counters}
    for driver, counters in HARDWARE_COUNTERS.items()
}
_BY_NAME_ALONE = _PORT | {SW_LINK_DOWN: _OF_DRIVER["hfi1"][SW_LINK_DOWN]}
"""No two drivers mean different things by these."""


def counters_of(driver: str | None) -> Mapping[str, Counter]:
    """Everything the catalogue has for ports of this driver, by name."""
    return _OF_DRIVER.get(driver_of(driver).name, _PORT)


def all_counters() -> list[Counter]:
    """Everything the catalogue has, the counters of all drivers once and in a settled order."""
    known = [counter for counters in HARDWARE_COUNTERS.values() for counter in counters]
    return list(dict.fromkeys((*PORT_COUNTERS, *known)))


def counter_of(driver: str | None, name: str) -> Counter | None:
    """What this file of this driver counts; None where that is not known.

    mlx5 in switchdev mode has the same counters with `vport_` before their names.
    """
    known = counters_of(driver)
    counter = known.get(name)
    if counter is None and name.startswith(_REPRESENTOR):
        plain = known.get(_plain(name))
        return plain and replace(plain, name=name)
    return counter


def tier_of(name: str) -> Tier:
    """How often a file is read: what the catalogue does not know goes with its directory."""
    counter = _BY_NAME_ALONE.get(name)
    if counter is not None:
        return counter.tier
    return "slow" if name.startswith(_HARDWARE) else "rare"


def stop_of(name: str) -> int | None:
    """The value at which a counter counts no further; None where it wraps or is unknown."""
    counter = _BY_NAME_ALONE.get(name)
    return counter.stop if counter is not None else None


_STOPS = {name: counter.stop for name, counter in _BY_NAME_ALONE.items() if counter.stop}


def saturated_among(values: Mapping[str, int]) -> tuple[str, ...]:
    """Counters that stand at their stops."""
    counted = values.keys() & _STOPS.keys()
    return tuple(sorted(name for name in counted if values[name] == _STOPS[name]))


def bits_of(name: str) -> int:
    """How wide a value this file can give; 64 where it is not known."""
    counter = _BY_NAME_ALONE.get(name)
    return counter.bits if counter is not None else 64


def lag_of(name: str) -> int:
    """How long in ns a counter may take to count what the state already shows."""
    counter = _BY_NAME_ALONE.get(name)
    return counter.lag_ns if counter is not None else 0


def rise_between(name: str, last: int, value: int) -> int | None:
    """How far a counter of the port rose; None where it was reset, or that cannot be told."""
    return _BY_NAME_ALONE[name].rise(last, value)


def is_vouched_for(name: str) -> bool:
    """Whether it is known to count every down, before it was seen to."""
    return name in {CARRIER_DOWNS, LINK_DOWNED, SW_LINK_DOWN}


def witnesses_among(driver: str | None, link_layer: str, names: Collection[str]) -> tuple[str, ...]:
    """Which of these files count every down of a port, the best first.

    On InfiniBand the netdev's carrier is none: it waits for the subnet manager.
    """
    known = driver_of(driver)
    best = (known.own_witness, LINK_DOWNED) if link_layer == "InfiniBand" else (CARRIER_DOWNS,)
    believed = [
        name
        for name in (*best, LINK_DOWN_EVENTS_PHY)
        if name != LINK_DOWNED or link_layer in known.counts_link_downed_on
    ]
    return tuple(name for name in believed if name in names)


def transmitted_among(driver: str | None, names: Collection[str]) -> str | None:
    """The counter of what the port sent; None where there is none of these."""
    candidates = (_XMIT_DATA, *driver_of(driver).transmitted)
    return next((name for name in candidates if name in names), None)


def refreshes_the_rest(driver: str | None, name: str) -> bool:
    """Whether this hardware counter must be read before the others, or each costs a refresh."""
    return driver_of(driver).refreshed_by == _plain(name)


def commands_of(
    driver: str | None, link_layer: str, names: Iterable[str], *, at_once: bool = False
) -> int:
    """Commands of the firmware that it takes to read these files in this order, within 10 ms.

    `at_once`: all hardware counters are told in one message, which is one refresh.
    """
    known = driver_of(driver)
    infiniband = link_layer == "InfiniBand"
    query = known.state_commands if infiniband else known.ethernet_state_commands
    commands, refreshed = 0, False
    for name in names:
        if name in _QUERIES:
            commands += query
        elif name.startswith("counters/"):
            commands += known.pma_commands
        elif name.startswith(_HARDWARE) and not refreshed:
            commands += known.refresh_commands
            refreshed = at_once or known.refreshed_by in {None, _plain(name)}
    return commands


def statistics_commands_of(driver: str | None, link_layer: str) -> int:
    """Commands of the firmware that one reading of a netdev's statistics takes."""
    known = driver_of(driver)
    if link_layer == "InfiniBand":
        return known.ipoib_statistics_commands
    return known.statistics_commands


def short_name(name: str) -> str:
    """As people know it: `link_downed`, `carrier_down_count`, `out_of_sequence`."""
    return name.rpartition("/")[2]


def _plain(name: str) -> str:
    return name.replace(_REPRESENTOR, _HARDWARE)
