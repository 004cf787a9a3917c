"""`flapd ports`: every port here, also where no agent runs."""

import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from flapd.cli.client import NoAgentError, Target, ask
from flapd.cli.output import Cell, Column, decoded, note, print_json, print_table
from flapd.cli.text import printable
from flapd.config import Config
from flapd.serve.items import PortItem, PortList, port_item

_COLUMNS = (
    Column("port", is_whole=True),
    Column("link"),
    Column("netdev"),
    Column("state"),
    Column("rate", is_number=True, is_whole=True),
    Column("witness", is_whole=True),
    Column("24 h", is_number=True),
)
_STATE_STYLE = {True: "green", False: "bold red", None: "yellow"}


def ports(targets: Sequence[Target], here: Config | None, as_json: bool) -> int:
    """The exit status; with `here` the ports are read directly where no agent answers."""
    try:
        body = ask(targets, "/api/v1/ports")
    except NoAgentError as error:
        if here is None:
            raise
        note(f"{error}; what follows is one reading of sysfs, without history")
        body = _surveyed(here)
    if as_json:
        print_json(body)
    else:
        _print_ports(decoded(body, PortList).items)
    return 0


def _surveyed(config: Config) -> bytes:
    from flapd.sources.survey import survey  # noqa: PLC0415 - only where no agent answers

    views = survey(Path(config.paths.sysfs), config.ports)
    now_ns = time.monotonic_ns()
    items = [port_item(view, now_ns=now_ns, flaps_24h=None) for view in views]
    return msgspec.json.encode(PortList(items))


def _print_ports(items: Sequence[PortItem]) -> None:
    if not items:
        print("No ports: there is no RDMA device, or the configuration leaves all of them out.")
        return
    print_table(_COLUMNS, [_row(item) for item in items])
    for item in items:
        for source, how in item.sources.items():
            if how != "on":
                print(printable(f"{item.port}: {source}: {how}"))


def _row(item: PortItem) -> list[Cell]:
    identity = item.guid or item.pci or ""
    return [
        Cell(f"{item.port}\n{identity}"),
        Cell(f"{item.link_layer}\n{item.driver or ''}"),
        Cell(item.netdev or "-"),
        Cell(f"{item.state or 'not known'}\n{item.phys_state or ''}", _STATE_STYLE[item.up]),
        Cell(_rate(item)),
        Cell(_witness(item), "" if item.witness.status in ("live", "unproven") else "yellow"),
        Cell("-" if item.flaps_24h is None else str(item.flaps_24h)),
    ]


def _rate(item: PortItem) -> str:
    if item.rate_gbps is None:
        return "-"
    return f"{item.rate_gbps:g} Gb/s\n{item.width or ''}"


def _witness(item: PortItem) -> str:
    if item.witness.name is None:
        return "none"
    value = "-" if item.witness.value is None else str(item.witness.value)
    return f"{item.witness.name}\n{value} {item.witness.status}"
