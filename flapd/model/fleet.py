"""Fleet: what a node tells the others of its cluster, as MessagePack with a version.

A `NodeEvent` is what its journal took, kept by the fleet's stream; a `Heartbeat` is how the node
is now, kept by nobody. A reader ignores fields it does not know. The version rises when what a
reader knows changes its meaning.
"""

from typing import Annotated, TypeVar, get_args

import msgspec

from flapd.model.errors import FlapdError
from flapd.model.event import Event, PortChange, port_id
from flapd.model.plausible import implausible_event, implausible_heartbeat

FLEET_VERSION = 1
_KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(Event))
LARGEST_MESSAGE_BYTES = 1 << 20
"""`max_payload` of a NATS server by default."""


class FleetMessageError(FlapdError):
    """A message of the fleet that cannot be taken: foreign, damaged, or of a newer flapd."""


class NodeEvent(msgspec.Struct, frozen=True, array_like=True, tag="node_event"):
    """One event of one node.

    It may come several times, and several nodes that read one file may tell of one fault: its
    `message_id` says which are the same. Of each id the highest revision holds, and a node's come
    in their order. Of faults come those that were primary at some time; a `Heartbeat` counts all.
    """

    version: int
    cluster: str
    node: str
    seq: int
    """Place in the journal of its node; one that was lost begins anew at 1."""
    event: Event

    @property
    def kind(self) -> str:
        return str(self.event.__struct_config__.tag)

    @property
    def message_id(self) -> str:
        return f"{self.event.id}.{self.event.revision}"


class ClockState(msgspec.Struct, frozen=True):
    """What the kernel knows of its wall clock (adjtimex(2)); None: it does not say."""

    is_synchronized: bool
    offset_seconds: float | None
    """By which it is still to be corrected, as far as who steers it tells the kernel."""
    estimated_error_seconds: float | None
    largest_error_seconds: float | None


class PortState(msgspec.Struct, frozen=True):
    """One port of a node, now; `up` is None where that is not known."""

    key: str
    port: Annotated[str, msgspec.Meta(pattern=r"^[!-.0-~]{1,64}/[0-9]{1,3}\Z")]
    """Device and number, as `mlx5_0/1`."""
    guid: str | None
    up: bool | None
    watched: bool
    """Present, and it was up at some time."""
    readable: bool
    """What tells of the link was read, and not long ago; else it says nothing that it is clean."""
    witness: str
    """Its status: `live`, `unproven`, `saturated`, `lying`, `unreadable` or `none`."""
    flapping: bool
    maintenance: bool
    grace: bool
    link_layer: str = ""
    """`InfiniBand` or `Ethernet`; empty: an older flapd does not say."""


class Heartbeat(msgspec.Struct, frozen=True, array_like=True, tag="heartbeat"):
    """A node lives, and how it is."""

    version: int
    cluster: str
    node: str
    flapd: str
    """Its version there."""
    boot: str
    sent_unix_ns: int
    """By its own wall clock: less the time of receipt, how far that one is off, but for the way."""
    sent_monotonic_ns: int
    every_seconds: float
    """The next one comes after so long."""
    clock: ClockState | None
    """None: nobody tells."""
    last_seq: int | None
    """Of its journal; None: it cannot be read."""
    acknowledged_seq: int
    """Up to here the stream has it all; what is between was not told yet."""
    not_ready: tuple[str, ...]
    """What it cannot do, a sentence each."""
    blind_to: tuple[str, ...]
    """What of jobs it cannot see, in words."""
    ports: tuple[PortState, ...]
    jobs: tuple[str, ...]
    """Those that run there."""
    faults: dict[str, int]
    """By kind, all there ever were, with those that are only ever a consequence of others."""


_T = TypeVar("_T", NodeEvent, Heartbeat)


class Publishing(msgspec.Struct):
    """How telling the fleet goes; counts only rise while the agent runs."""

    connected: bool = False
    server: str | None = None
    """Where it is connected, or was last."""
    reason: str = "not connected yet"
    """Why it is not connected, or why the stream does not take what it is told; else empty."""
    outbox_events: int = 0
    """Entries of the journal that the stream does not have yet."""
    events_published: int = 0
    events_lost: int = 0
    """Never told: the history let go of them first, no server takes a message so large, or they are
    of another name that this node had."""

    def how(self) -> str:
        """In words: that all is well, or what is in the way."""
        return self.reason or "connected"


def encode(message: NodeEvent | Heartbeat) -> bytes:
    return msgspec.msgpack.encode(message)


def decode_node_event(body: bytes) -> NodeEvent:
    """FleetMessageError where it is none that this version understands."""
    told = _decoded(body, NodeEvent)
    _refuse_absurd(implausible_event(told.event))
    _refuse_foreign_id(told)
    _refuse_hidden_name(getattr(told.event, "job", None))
    return told


def decode_heartbeat(body: bytes) -> Heartbeat:
    """FleetMessageError where it is none that this version understands."""
    told = _decoded(body, Heartbeat)
    _refuse_absurd(implausible_heartbeat(told))
    return told


def _decoded(body: bytes, kind: type[_T]) -> _T:
    if len(body) > LARGEST_MESSAGE_BYTES:
        raise FleetMessageError(f"a message of {len(body)} bytes is larger than any of ours")
    try:
        told = msgspec.msgpack.decode(body, type=kind)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        _refuse_newer(_version_of(body))
        raise FleetMessageError(f"a message that is none of ours: {error}") from error
    _refuse_newer(told.version)
    return told


def _refuse_absurd(found: str | None) -> None:
    if found is not None:
        raise FleetMessageError(f"a message that is none of ours: {found}")


def _refuse_foreign_id(told: NodeEvent) -> None:
    """An id begins with its kind, and that of a port is made of its node and key alone.

    Those of outages, stalls and jobs are made of their node too, with what no event has in full
    (how far the witness had counted) or what it may tell otherwise later (when it began). None can
    be taken before it is there but by who knows the boot and foresees the count or the nanosecond;
    from then on it is its teller's (store/tellers.py). Faults and claims are nobody's.
    """
    event, kind = told.event, told.event.id.partition("-")[0]
    if kind != told.kind and kind in _KINDS:
        raise FleetMessageError(f"a message of a {told.kind} with the id of a {kind}")
    if isinstance(event, PortChange) and event.id != port_id(event.node, event.key):
        raise FleetMessageError(f"{event.id} is not the id of port {event.key} of {event.node}")


def _refuse_hidden_name(job: str | None) -> None:
    """Such names stand for what is of no job (core/fleet/memory.py)."""
    if job and job < " ":
        raise FleetMessageError(f"a message that is none of ours: a job of the name {job!r:.50}")


def _refuse_newer(version: int) -> None:
    if version > FLEET_VERSION:
        raise FleetMessageError(
            f"a message of version {version}, and this flapd knows {FLEET_VERSION}: "
            "a newer one is needed here"
        )


def _version_of(body: bytes) -> int:
    """Behind the tag, whatever follows; 0: it says none."""
    try:
        head = msgspec.msgpack.decode(body, type=list[msgspec.Raw])
        return msgspec.msgpack.decode(head[1] if len(head) > 1 else b"", type=int)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return 0
