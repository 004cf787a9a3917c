"""Topology as `ibnetdiscover` prints it, whole or with `-p` as a list of ports.

Forms: rdma-core, infiniband-diags/ibnetdiscover.c: out_switch, out_ca, out_ca_port and
dump_ports_report. A switch is told by its GUID; its description alone often is that of all.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from flapd.core.fleet.topology import Link, Peer
from flapd.model.errors import FlapdError

_NODE = re.compile(r'(Switch|Ca|Rt)\t\d+ "[SHR]-([0-9a-f]{1,16})"\s+# "(.*)"')
_PORT = re.compile(r"\[(\d{1,5})\]")
_CA_PORT = re.compile(
    r"\[(?P<number>\d{1,5})\]\((?P<guid>[0-9a-f]{1,16})\)\s+"
    r'"(?P<kind>[SHR])-(?P<other>[0-9a-f]{1,16})"\[(?P<at>\d{1,5})\](?:\[ext \d+\])?'
    r'\s*(?:\([0-9a-f]{1,16}\))?\s*# lid \d+ lmc \d+ "(?P<name>.*)" lid'
)
_LISTED = re.compile(
    r"(?P<kind>CA|SW|RT)\s+\d+\s+(?P<number>\d+) 0x(?P<guid>[0-9a-f]{16}) \S+ .*? - "
    r"(?P<other_kind>CA|SW|RT)\s+\d+\s+(?P<at>\d+) 0x(?P<other>[0-9a-f]{16}) "
    r"\( '(?P<own>.*)' - '(?P<name>.*)' \)"
)
_ALONE = re.compile(r"(?:CA|SW|RT)\s+\d+\s+\d+ 0x[0-9a-f]{16} ")
_SAID_BESIDES = re.compile(
    r"#|(?:vendid|devid|sysimgguid|switchguid|caguid|rtguid)=|Chassis |Hostname: |Non-Chassis Nodes"
)
_DESCRIBED = re.compile(r"(\S+) ([A-Za-z][A-Za-z0-9]*_\d+)")
"""What rdma-ndd writes: the host's name and the device's."""


class _End(NamedTuple):
    is_switch: bool
    guid: str
    name: str
    port: int


class _Cable(NamedTuple):
    """From a channel adapter's port; the device's GUID where that is known."""

    guids: tuple[str, ...]
    number: int
    described: str
    other: _End


def is_discovered(lines: Iterable[str]) -> bool:
    """Else it is something else, or damaged."""
    forms = ("vendid=", "switchguid=", "caguid=", "# Topology file: ")
    return any(line.startswith(forms) or _ALONE.match(line) is not None for line in lines)


def links_of_discovered(lines: Sequence[str]) -> Iterator[Link]:
    """FlapdError names the line that is not right."""
    cables = [*_listed(lines)] if any(map(_ALONE.match, lines)) else [*_whole(lines)]
    names: dict[str, set[str]] = defaultdict(set)
    for cable in cables:
        names[cable.other.name].add(cable.other.guid)
    shared = {name for name, guids in names.items() if len(guids) > 1}
    for cable in cables:
        yield from _links(cable, shared)


def _links(cable: _Cable, shared: set[str]) -> Iterator[Link]:
    peer = _peer(cable.other, shared)
    for guid in cable.guids:
        yield Link(peer, guid=guid, number=cable.number)
    described = _DESCRIBED.fullmatch(cable.described)
    if described is not None:
        yield Link(peer, node=described[1], port=f"{described[2]}/{cable.number}")


def _peer(other: _End, shared: set[str]) -> Peer:
    described = _DESCRIBED.fullmatch(other.name)
    if not other.is_switch and described is not None:
        return Peer(described[1], f"{described[2]}/{other.port}")
    name = f"{other.name} 0x{other.guid}" if other.name in shared else other.name
    return Peer(name or f"0x{other.guid}", str(other.port))


def _whole(lines: Sequence[str]) -> Iterator[_Cable]:
    node: re.Match[str] | None = None
    for number, line in enumerate(lines, 1):
        if not line.strip() or _SAID_BESIDES.match(line) is not None:
            continue
        header = _NODE.match(line)
        if header is not None:
            node = header
        elif _PORT.match(line) is None or node is None:
            raise _strange(number)
        elif node[1] == "Ca":
            port = _CA_PORT.match(line)
            if port is None:
                raise _strange(number)
            other = _End(port["kind"] == "S", _full(port["other"]), port["name"], int(port["at"]))
            yield _Cable((node[2], port["guid"]), int(port["number"]), node[3], other)


def _listed(lines: Sequence[str]) -> Iterator[_Cable]:
    for number, line in enumerate(lines, 1):
        if not line.strip() or line.startswith("#"):
            continue
        port = _LISTED.match(line)
        if port is None and (" - " in line or _ALONE.match(line) is None):
            raise _strange(number)
        if port is not None and port["kind"] == "CA":
            other = _End(port["other_kind"] == "SW", port["other"], port["name"], int(port["at"]))
            yield _Cable((port["guid"],), int(port["number"]), port["own"], other)


def _full(guid: str) -> str:
    return guid.rjust(16, "0")


def _strange(number: int) -> FlapdError:
    return FlapdError(f"topology line {number}: no line that ibnetdiscover prints")
