"""Topology as CSV: a row a cable, `node,device,port,switch,switch_port`, or other columns by name.

The first row may name the columns, in any order: `switch`, and `guid` or `node` and `device`;
`port` is 1 where it is not told.
"""

import csv
from collections.abc import Iterator, Sequence

from flapd.core.fleet.topology import Link, Peer, plain_guid
from flapd.model.errors import FlapdError

_COLUMNS = ("node", "device", "port", "switch", "switch_port")
_KNOWN = frozenset({*_COLUMNS, "guid"})
_LONGEST_CELL = 256


def links_of_csv(lines: Sequence[str]) -> Iterator[Link]:
    """FlapdError names the line that is not right."""
    columns: Sequence[str] | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        cells = _cells(line, number)
        if columns is None:
            columns = _columns(cells, number)
            if columns is not _COLUMNS:
                continue
        yield _link(_row(columns, cells, number), number)


def _cells(line: str, number: int) -> list[str]:
    try:
        (cells,) = csv.reader([line], strict=True)
    except (csv.Error, ValueError) as error:
        raise FlapdError(f"topology line {number}: this is no CSV: {error}") from error
    return [cell.strip() for cell in cells]


def _columns(cells: Sequence[str], number: int) -> Sequence[str]:
    """Without a row of names: the usual ones."""
    named = [cell.lower() for cell in cells]
    if "switch" not in named:
        return _COLUMNS
    strange = [name for name in named if name not in _KNOWN]
    if strange or len(set(named)) < len(named):
        raise FlapdError(
            f"topology line {number}: columns are {', '.join(sorted(_KNOWN))}, each once at most, "
            f"not {', '.join(named)}"
        )
    if "guid" not in named and not {"node", "device"} <= set(named):
        raise FlapdError(
            f"topology line {number}: a port is told by the column guid, or by node and device"
        )
    return named


def _row(columns: Sequence[str], cells: Sequence[str], number: int) -> dict[str, str]:
    if len(cells) != len(columns):
        raise FlapdError(
            f"topology line {number}: {len(cells)} values, and there should be "
            f"{len(columns)}: {','.join(columns)}"
        )
    if any(len(cell) > _LONGEST_CELL for cell in cells):
        raise FlapdError(f"topology line {number}: a value is longer than {_LONGEST_CELL} letters")
    return dict(zip(columns, cells, strict=True))


def _link(row: dict[str, str], number: int) -> Link:
    port = row.get("port") or "1"
    if not port.isdecimal() or len(port) > 5:
        raise FlapdError(f"topology line {number}: port is the number of a port, not {port!r}")
    if not row["switch"]:
        raise FlapdError(f"topology line {number}: no switch is named")
    guid = row.get("guid")
    if guid and plain_guid(guid) is None:
        raise FlapdError(f"topology line {number}: {guid!r} is no GUID")
    node, device = row.get("node"), row.get("device")
    if not guid and not (node and device):
        raise FlapdError(f"topology line {number}: no port is named")
    return Link(
        peer=Peer(row["switch"], row.get("switch_port", "")),
        node=node or None,
        port=f"{device}/{int(port)}" if device else None,
        guid=guid or None,
        number=int(port),
    )
