"""Items of a hub: nodes, and their ports as heartbeats tell of them. What is not known is None."""

import msgspec

from flapd.serve.items import Interval, Item, Listed, Peer, Witness


class ClockItem(msgspec.Struct, frozen=True):
    """How many seconds a node's wall clock is ahead of the hub's; behind is negative."""

    low: float
    likely: float
    high: float


class PortCounts(msgspec.Struct, frozen=True):
    """Of the ports that are watched."""

    watched: int
    up: int
    down: int
    unknown: int
    flapping: int


class NodeItem(Item, frozen=True, kw_only=True):
    """One node, as its last heartbeat tells; of one that is silent nothing is known now.

    Its revision is how far its journal went.
    """

    health: str
    """`healthy`, `unhealthy`, or `unknown` where it is silent."""
    reasons: list[str]
    seen: str | None
    """The last heartbeat; null: none came yet."""
    silent_seconds: float | None
    clock: ClockItem | None
    clock_synchronized: bool | None
    """As its own kernel says."""
    version: str | None
    boot: str | None
    ports: PortCounts | None
    jobs: list[str] | None
    """Those that run there; null where that is not known, or not told."""
    events_waiting: int | None
    """Entries of its journal that the stream does not have yet."""
    blind_to: list[str] | None
    """What of jobs it cannot see."""


class NodeList(Listed[NodeItem], frozen=True):
    """Of /nodes."""


class FleetPort(msgspec.Struct, frozen=True, kw_only=True):
    """One port, as the last heartbeat of its node tells; null is what only its node knows."""

    id: str
    revision: int = 0
    durable: bool = True
    node: str
    port: str
    device: str
    number: int
    guid: str | None
    pci: None = None
    driver: None = None
    link_layer: str | None
    """null: an older flapd there does not say."""
    netdev: None = None
    state: None = None
    phys_state: None = None
    rate_gbps: None = None
    width: None = None
    up: bool | None
    watched: bool
    ever_up: bool | None
    """null: it is not watched now, and its node does not say why."""
    witness: Witness
    flapping: bool | None
    flaps_24h: int | None
    last_down: Interval | None
    readable: bool
    stale_seconds: float | None
    grace: bool
    maintenance: bool | None
    peer: Peer | None


class FleetPortList(Listed[FleetPort], frozen=True):
    """Of /ports."""


class ChangeItem(Item, frozen=True, kw_only=True):
    """What changed about a port of a node."""

    port: str
    guid: str | None
    kind: str
    note: str
    time: str


class NodeCounts(msgspec.Struct, frozen=True):
    known: int
    healthy: int
    unhealthy: int
    unknown: int


class StreamItem(msgspec.Struct, frozen=True):
    """How reading the stream goes."""

    connected: bool
    server: str | None
    reason: str | None
    """Why nothing can be read; null where all is well."""
    events: int
    """Taken since the hub began."""
    waiting: int | None
    """Messages still to be taken."""
    missed: int
    """Messages that the stream let go of before they were read."""
    refused: int
    lag_seconds: float | None
    """How old the last message that was taken is, where others wait; else 0."""


class FleetItem(msgspec.Struct, frozen=True):
    """Is the fleet well, and the hub."""

    cluster: str
    version: str
    hub: str
    ready: bool
    reasons: list[str]
    """Why it is not ready."""
    nodes: NodeCounts
    ports: PortCounts
    """Of the nodes that are heard."""
    wrong: list[NodeItem]
    """The nodes that are not healthy, the first hundred; first those of which anything is known."""
    stream: StreamItem
    history_bytes: int
    history_durable: bool
    incidents_open: int | None
    """null for those who may not see jobs, and where the history cannot be read."""


class DrainItem(msgspec.Struct, frozen=True):
    node: str
    reason: str
    granted: bool
    """False: as many others as may be are worse."""


class DrainList(msgspec.Struct, frozen=True):
    items: list[DrainItem]
    """Nodes that should run no job, the worst first."""
    cap: int
    """So many of them may be taken out at one time."""
    node: DrainItem | None
    """The one that was asked for; null: nothing speaks against it."""
    known: bool
    """It was heard not long ago; else nothing can be told of it."""
