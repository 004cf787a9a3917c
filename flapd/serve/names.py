"""What ports, states and counters are called on screen, in JSON and in labels."""

from collections.abc import Collection, Iterable, Mapping

from flapd.core.fabric.catalogue import NOT_A_COUNTER, short_name
from flapd.core.fabric.view import PortView

_HW = "hw_counters/"
_DIRECTORIES = ("counters/", _HW, "net/")

_STATES = ("NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER")
"""drivers/infiniband/core/sysfs.c, state_show()."""
_PHYSICAL_STATES = (
    None,
    "Sleep",
    "Polling",
    "Disabled",
    "PortConfigurationTraining",
    "LinkUp",
    "LinkErrorRecovery",
    "Phy Test",
)
"""drivers/infiniband/core/sysfs.c, phys_state_to_str()."""


def state_text(number: int | None) -> str | None:
    """As the kernel writes it: `ACTIVE`."""
    return _text(_STATES, number)


def physical_state_text(number: int | None) -> str | None:
    """As the kernel writes it: `LinkUp`."""
    return _text(_PHYSICAL_STATES, number)


def _text(texts: tuple[str | None, ...], number: int | None) -> str | None:
    if number is None:
        return None
    known = texts[number] if 0 <= number < len(texts) else None
    return known or f"UNKNOWN ({number})"


def counter_names(view: PortView) -> dict[str, str]:
    """File -> short name of every counter of a port, read or not."""
    return shown_names([name for name in {**view.values, **view.errors} if _is_counter(name)])


def shown_names(files: Collection[str]) -> dict[str, str]:
    """File -> short name.

    Where two directories have a counter of one name, that of hw_counters keeps its directory.
    """
    plain = {short_name(name) for name in files if not name.startswith(_HW)}
    return {name: _shown(name, plain) for name in files}


def _shown(name: str, plain: set[str]) -> str:
    short = short_name(name)
    return name if name.startswith(_HW) and short in plain else short


def _is_counter(name: str) -> bool:
    return name.startswith(_DIRECTORIES) and name not in NOT_A_COUNTER


def named_ports(views: Iterable[PortView]) -> list[PortView]:
    """One view for each device and number: a card that was replaced leaves its name to the new."""
    chosen: dict[str, PortView] = {}
    for view in views:
        other = chosen.get(view.port.name)
        if other is None or _recency(view) > _recency(other):
            chosen[view.port.name] = view
    return list(chosen.values())


def sources_up(
    views: Iterable[PortView], others: Mapping[str, Mapping[str, str]]
) -> dict[str, bool]:
    """Source -> it tells of at least one port; of no ports nothing can be told.

    `others` are, by key of the port, those besides sysfs: "on", or why they tell nothing.
    """
    present = [view for view in views if view.present]
    up = {"sysfs": any(view.readable for view in present)} if present else {}
    for view in present:
        for name, told in others.get(view.port.key, {}).items():
            up[name] = up.get(name, False) or told == "on"
    return up


def _recency(view: PortView) -> tuple[bool, int]:
    return view.present, view.last_read_ns or 0
