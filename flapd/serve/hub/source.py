"""HubSource: what serving needs from a hub."""

from typing import Protocol

import msgspec

from flapd.core.fleet import FleetTotals, NodeView, Peer
from flapd.model.consuming import Consuming
from flapd.serve.agent import Teller


class FleetSnapshot(msgspec.Struct, frozen=True):
    """What may be shown of the fleet besides its history."""

    nodes: tuple[NodeView, ...] = ()
    """In order of their names."""
    totals: FleetTotals = msgspec.field(default_factory=FleetTotals)


class HubHealth(msgspec.Struct, frozen=True):
    """How the hub itself is."""

    history_write_errors: int = 0
    events_not_durable: int = 0
    """Of the batch that the disk does not take."""
    config_reloaded_ok: bool = True
    restart_needed: tuple[str, ...] = ()


class HubSource(Teller, Protocol):
    @property
    def cluster(self) -> str: ...

    @property
    def fleet(self) -> FleetSnapshot: ...

    @property
    def consuming(self) -> Consuming: ...

    @property
    def health(self) -> HubHealth: ...

    def peer_of(self, node: str, port: str, guid: str | None) -> Peer | None:
        """The other end of a port's cable, where a file says so."""
        ...

    def shared_cause_of(self, flap_id: str) -> str | None:
        """What many ports went down with at once; None: it went down for itself."""
        ...
