"""`flapd ports`: every port here, also where no agent runs, and of a capture."""

import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from flapd.cli.answers import Module, PortAnswer, PortsAnswer, Witness
from flapd.cli.client import NoAgentError, ask
from flapd.cli.findings import silent, silent_everywhere
from flapd.cli.given import regular
from flapd.cli.of_node import tells_of_many, with_node
from flapd.cli.output import Cell, Column, decoded, note, print_json, print_table
from flapd.cli.pages import LARGEST_PAGE
from flapd.cli.target import Target
from flapd.cli.text import clock_time, printable
from flapd.config import Config
from flapd.core.fabric.view import PortView
from flapd.serve.bonds import with_members
from flapd.serve.items import PortList
from flapd.serve.told import port_item

_COLUMNS = (
    Column("port", is_whole=True),
    Column("link"),
    Column("netdev"),
    Column("state"),
    Column("rate", is_number=True, is_whole=True),
    Column("witness", is_whole=True),
    Column("24 h", is_number=True),
)
_UP = {True: "up", False: "down", None: "not known"}
_STATE_STYLE = {True: "green", False: "bold red", None: "yellow"}
_WITNESS_WORDS = {
    "live": "counts",
    "unproven": "not moved yet",
    "saturated": "at its stop",
    "lying": "missed a down",
    "unreadable": "cannot be read",
    "none": "",
}


def ports(
    targets: Sequence[Target], here: Config | None, as_json: bool, node: str | None = None
) -> int:
    """The exit status; with `here` the ports are read directly where no agent answers."""
    of_node = {} if node is None else {"node": node}
    try:
        body = ask(targets, "/api/v1/ports", {"limit": LARGEST_PAGE, **of_node})
    except NoAgentError as error:
        if here is None:
            raise
        note(f"{error}; what follows is one reading of sysfs, without history")
        body = _surveyed(here)
        _show(body, as_json)
    else:
        _show(body, as_json, partial(tells_of_many, targets))
    return 0


def captured(capture: Path, as_json: bool) -> int:
    """Those of a capture; the exit status."""
    from flapd.sources.capture_opening import captured_ports  # noqa: PLC0415 - only for this

    with tempfile.TemporaryDirectory(prefix="flapd-") as directory:
        manifest, views = captured_ports(regular(capture), Path(directory))
    note(f"{capture}: node {manifest.node}, {clock_time(manifest.taken)}, flapd {manifest.flapd}")
    _show(_listed(views), as_json)
    return 0


def _surveyed(config: Config) -> bytes:
    from flapd.sources.survey import survey  # noqa: PLC0415 - only where no agent answers

    return _listed(survey(Path(config.paths.sysfs), config.ports))


def _listed(views: Sequence[PortView]) -> bytes:
    now_ns = time.monotonic_ns()
    items = [port_item(view, now_ns=now_ns, flaps_24h=None) for view in with_members(views)]
    return msgspec.json.encode(PortList(items))


def _show(body: bytes, as_json: bool, of_many: Callable[[], bool] = lambda: False) -> None:
    if as_json:
        print_json(body)
        return
    listed = decoded(body, PortsAnswer)
    items = listed.items
    if not items:
        print("No ports: there is no RDMA device, or the configuration leaves all of them out.")
        return
    if listed.next is not None:
        note(f"these are the first {len(items)}: there are more; --node N shows those of one node")
    if of_many():
        items = [with_node(item) for item in items]
    print_table(_COLUMNS, [_row(item) for item in items])
    everywhere = silent_everywhere(items)
    for said in everywhere:
        print(printable(f"all ports: {said}"))
    for item in items:
        for remark in remarks(item):
            if remark not in everywhere:
                print(printable(f"{item.port}: {remark}"))


def remarks(item: PortAnswer) -> list[str]:
    """What the table has no room for, a line each."""
    told = silent(item)
    if item.ever_up is False:
        told.append("was never up here: it is listed and not watched")
    if item.flapping:
        told.append(f"is flapping: penalty {item.penalty or 0:.0f}")
    elif item.penalty and item.penalty >= 1:
        told.append(f"penalty {item.penalty:.0f}")
    if item.maintenance:
        told.append("in maintenance")
    if item.grace:
        told.append("soon after a boot: downs are recorded, not alerted")
    if item.saturated:
        told.append(f"stand at their stop and count no further: {', '.join(item.saturated)}")
    if item.module:
        told.append(f"module {_module(item.module)}")
    if item.members:
        told.append(f"bond of {', '.join(item.members)}")
    if item.repaired:
        told.append(f"repaired {clock_time(item.repaired.time)}: {item.repaired.note or 'no note'}")
    return told


def _module(module: Module) -> str:
    return " ".join(part for part in (module.vendor, module.part, module.serial) if part)


def _row(item: PortAnswer) -> list[Cell]:
    identity = item.guid or item.pci or ""
    return [
        Cell(f"{item.port}\n{identity}"),
        Cell(f"{item.link_layer or 'not known'}\n{item.driver or ''}"),
        Cell(item.netdev or "-"),
        Cell(f"{item.state or _UP[item.up]}\n{item.phys_state or ''}", _STATE_STYLE[item.up]),
        Cell(_rate(item), "yellow" if item.downgraded else ""),
        Cell(_witness(item.witness), "" if _counts(item.witness) else "yellow"),
        Cell("-" if item.flaps_24h is None else str(item.flaps_24h)),
    ]


def _rate(item: PortAnswer) -> str:
    rate = "-" if item.rate_gbps is None else f"{item.rate_gbps:g} Gb/s"
    if item.downgraded and item.expected_rate_gbps is not None:
        return f"{rate}\nnot {item.expected_rate_gbps:g}"
    return f"{rate}\n{item.width or ''}"


def _counts(witness: Witness | None) -> bool:
    return witness is not None and witness.status in ("live", "unproven")


def _witness(witness: Witness | None) -> str:
    if witness is None:
        return "not known"
    status = witness.status
    if witness.name is None:
        return _WITNESS_WORDS.get(status) or status  # a hub is not told the name
    value = "-" if witness.value is None else str(witness.value)
    return f"{witness.name}\n{value} {_WITNESS_WORDS.get(status, status)}".rstrip()
