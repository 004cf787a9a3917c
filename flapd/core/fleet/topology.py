"""Topology: which switch port is at the other end of each port's cable, where a file says so."""

import re
from collections import Counter
from collections.abc import Iterable

import msgspec

_GUID = re.compile(r"(?:0x)?([0-9a-f]{1,16})|([0-9a-f]{4}(?::[0-9a-f]{4}){3})", re.IGNORECASE)


class Peer(msgspec.Struct, frozen=True, order=True):
    """The other end of a port's link."""

    switch: str
    """Or another node, where two are wired without a switch; then `port` is `mlx5_0/1`."""
    port: str
    """As the file writes it; "" where it does not."""

    def __str__(self) -> str:
        return f"{self.switch} port {self.port}" if self.port else self.switch


class Link(msgspec.Struct, frozen=True):
    """One cable, from a port of a node; None where the file does not say."""

    peer: Peer
    node: str | None = None
    port: str | None = None
    """`mlx5_0/1`."""
    guid: str | None = None
    """Of the port or of its device."""
    number: int = 1
    """Of the port."""


class Topology:
    """Finds the peer of a port by a GUID and its number, else by the names of node and port."""

    def __init__(self, links: Iterable[Link] = ()) -> None:
        self._by_guid: dict[tuple[str, int], Peer] = {}
        self._by_name: dict[tuple[str, str], Peer] = {}
        for link in links:
            if link.guid is not None and (guid := plain_guid(link.guid)) is not None:
                self._by_guid[guid, link.number] = link.peer
            if link.node is not None and link.port is not None:
                self._by_name[short_name(link.node), link.port] = link.peer
        told = list(self._by_guid.values() or self._by_name.values())
        named = {peer for peer in told if peer.port}
        self._ports = Counter(peer.switch for peer in [*named, *(p for p in told if not p.port)])

    def __len__(self) -> int:
        return max(len(self._by_guid), len(self._by_name))

    def ports_of(self, switch: str) -> int:
        """That the file says are at its other ends."""
        return self._ports.get(switch, 0)

    def share_of(self, switch: str | None) -> float:
        """Of all ports that the file names, those at its other ends; 1 where there is no switch."""
        whole = sum(self._ports.values())
        return 1.0 if switch is None or not whole else self.ports_of(switch) / whole

    def peer_of(self, node: str, port: str, guid: str | None) -> Peer | None:
        """None: the file does not say."""
        if guid is not None and self._by_guid and (plain := plain_guid(guid)) is not None:
            number = port.partition("/")[2]
            peer = self._by_guid.get((plain, int(number) if number.isdecimal() else 1))
            if peer is not None:
                return peer
        return self._by_name.get((short_name(node), port)) if self._by_name else None


def plain_guid(text: str) -> str | None:
    """Sixteen hexadecimal digits, however a tool writes a GUID; None: it is none."""
    if _GUID.fullmatch(text.strip()) is None:
        return None
    return text.strip().lower().removeprefix("0x").replace(":", "").rjust(16, "0")


def short_name(node: str) -> str:
    """Node descriptions seldom carry the domain."""
    return node.partition(".")[0].lower()
