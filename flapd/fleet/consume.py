"""Consumer: reads all that the nodes of a cluster tell, and goes on where it was.

What was read is handed over in order, and counts as taken once whoever takes it has it on disk,
with the position up to which that is.
"""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

import structlog

from flapd.fleet.connected import Connected, Pauses, growing_pauses
from flapd.fleet.settings import FleetSettings
from flapd.fleet.subjects import Origin, event_subject, heartbeats_of, origin_of
from flapd.model.consuming import Consuming, Position
from flapd.model.event import Event
from flapd.model.fleet import (
    FleetMessageError,
    Heartbeat,
    NodeEvent,
    decode_heartbeat,
    decode_node_event,
)
from flapd.model.incident import Incident

if TYPE_CHECKING:
    from flapd.fleet.connection import Connection
    from flapd.fleet.pull import Stored, StreamState

Take = Callable[[Sequence[NodeEvent], Position, bool], "Future[None]"]
"""Events, the position behind them, whether that is the stream's end; done once durable."""
Beat = Callable[[Heartbeat], None]

_log = structlog.get_logger("flapd.fleet")


class Consumer:
    def __init__(
        self,
        settings: FleetSettings,
        name: str,
        position: Position,
        take: Take,
        beat: Beat,
        *,
        pauses: Pauses = growing_pauses,
    ) -> None:
        """`take` and `beat` are called in this thread, and must not wait."""
        self.state = Consuming()
        self._settings = settings
        self._position = position
        self._take = take
        self._beat = beat
        self._connected = Connected(settings, name, self._read, self.state, pauses)

    def start(self) -> None:
        self._connected.start()

    def stop(self, within_seconds: float) -> bool:
        """What is not taken by then is read after the next start; False: it has not ended."""
        return self._connected.stop(within_seconds)

    def _read(self, connection: "Connection") -> Sequence[Coroutine[Any, Any, object]]:
        return self._read_events(connection), self._hear_beats(connection)

    async def _read_events(self, connection: "Connection") -> None:
        from flapd.fleet.pull import Pull, stream_state  # noqa: PLC0415 - as connection.py

        subject = event_subject(self._settings.cluster, "any", "flap")
        stream = await stream_state(connection.client, subject)
        self._begin(stream)
        pull = Pull(connection.client, stream.name)
        await pull.open(self._position.seq + 1)
        while True:
            await self._hand_over(stream, await pull.next())

    def _begin(self, stream: "StreamState") -> None:
        """Where the store has come to, unless it is of another stream or ahead of this one."""
        position = self._position
        if position.created != stream.created or position.seq > stream.last_seq:
            if position.created:
                _log.warning("stream_made_anew", created=stream.created, had=position.seq)
            self._position = Position(stream.created, stream.first_seq - 1)
        self.state.waiting = stream.last_seq - max(self._position.seq, stream.first_seq - 1)

    async def _hand_over(self, stream: "StreamState", stored: "Sequence[Stored]") -> None:
        self._note_missed(stored)
        events = [told for one in stored if (told := self._told(one)) is not None]
        last = stored[-1]
        position = Position(stream.created, last.seq, last.unix_ns)
        await asyncio.wrap_future(self._take(events, position, last.waiting == 0))
        self._position = position
        self._count(events, last)

    def _note_missed(self, stored: "Sequence[Stored]") -> None:
        """Numbers are left out where the stream had let go of what they were."""
        missed = stored[-1].seq - self._position.seq - len(stored)
        if missed > 0:
            self.state.missed += missed
            _log.error("stream_had_let_go", messages=missed, after=self._position.seq)

    def _count(self, events: Sequence[NodeEvent], last: "Stored") -> None:
        counts = dict(self.state.events)
        for told in events:
            counts[told.kind] = counts.get(told.kind, 0) + 1
        self.state.events = counts
        self.state.waiting = last.waiting
        self.state.taken_until_unix_ns = last.unix_ns

    def _told(self, stored: "Stored") -> NodeEvent | None:
        """None where it is of another cluster, or may not be believed."""
        try:
            origin = origin_of(stored.subject)
            if origin.cluster != self._settings.cluster:
                return None
            told = decode_node_event(stored.body)
            _refuse_another(origin, told, told.event.node)
            _refuse_of_fleet(told.event)
        except FleetMessageError as error:
            self._refused(stored.subject, error)
            return None
        except Exception:  # noqa: BLE001 - a fault of ours: the stream would bring it for ever
            self.state.refused += 1
            _log.exception("left_out", subject=stored.subject, seq=stored.seq)
            return None
        return told

    async def _hear_beats(self, connection: "Connection") -> None:
        from flapd.fleet.pull import hear  # noqa: PLC0415 - as connection.py

        await hear(connection.client, heartbeats_of(self._settings.cluster), self._heard)
        await connection.ended.wait()

    def _heard(self, subject: str, body: bytes) -> None:
        try:
            told = decode_heartbeat(body)
            _refuse_another(origin_of(subject), told, told.node)
        except FleetMessageError as error:
            self._refused(subject, error)
        else:
            self._beat(told)

    def _refused(self, subject: str, error: FleetMessageError) -> None:
        self.state.refused += 1
        _log.warning("fleet_message_refused", subject=subject, error=str(error))


def _refuse_of_fleet(event: Event) -> None:
    """Those are worked out by each hub for itself."""
    if isinstance(event, Incident) and event.nodes:
        raise FleetMessageError("it tells an incident of the fleet, which no node knows of")


def _refuse_another(origin: Origin, told: NodeEvent | Heartbeat, node: str) -> None:
    """A server lets a node tell under its own name alone; what is inside must not say another."""
    if (told.cluster, told.node, node) != (*origin, origin.node):
        raise FleetMessageError(f"it says that it is of {node!r} in {told.cluster!r}")
