"""StreamApi: what the journal takes, as server-sent events, resumed by the journal's numbers.

Each stream reads the journal from where it stands, when it is told that there is more: what a
slow client has not taken waits in the journal and nowhere else.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager, suppress
from typing import NamedTuple

from aiohttp import web

from flapd.model.event import Event, Outage, PortChange
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.stall import Stall
from flapd.serve.agent import Teller
from flapd.serve.answers import encoded, in_thread, written
from flapd.serve.errors import ApiError
from flapd.serve.items import GapItem
from flapd.serve.parameter import bad, whole
from flapd.serve.route import Question, Route
from flapd.serve.told import flap_item
from flapd.serve.told_jobs import Naming, fault_item, incident_item, job_item, stall_item

MOST_STREAMS = 64
PING_SECONDS = 15.0
RECONNECT_MS = 3000

_AT_ONCE = 100
_LAST_EVENT_ID = whole("last_event_id")
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


class Names(NamedTuple):
    """How ports are known now."""

    changed: Callable[[PortChange], object | None]
    """The item of a port that changed; None where it has been forgotten since."""
    naming: Naming


class StreamApi:
    """Streams of one listener."""

    def __init__(self, agent: Teller, executor: Executor, names: Callable[[], Names]) -> None:
        self._agent = agent
        self._executor = executor
        self._names = names
        self._streams = 0
        self._is_closed = False
        self._more = asyncio.Event()
        """Set when there is more; then another takes its place."""

    def routes(self) -> Iterable[Route]:
        yield Route(
            "GET",
            "/api/v1/stream",
            "Server-sent events `port`, `flap`, `fault`, `stall`, `job`, `incident`: the item, new "
            "or revised; `gap`: some are gone",
            self._stream,
            None,
            (_LAST_EVENT_ID,),
            streams=("text/event-stream",),
        )

    async def open(self, _app: web.Application) -> None:
        loop = asyncio.get_running_loop()
        self._agent.subscribe(lambda: _call_in(loop, self._wake))

    async def close(self, _app: web.Application) -> None:
        """Ends all streams."""
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        self._more.set()
        self._more = asyncio.Event()

    async def _stream(self, question: Question) -> web.StreamResponse:
        answer = web.StreamResponse(headers=_HEADERS)
        answer.content_type = "text/event-stream"
        if question.request.method == "HEAD":
            await answer.prepare(question.request)
            return answer
        with self._one_more():
            seq, begin = await in_thread(self._executor, self._begin, _wanted(question))
            await answer.prepare(question.request)
            await written(question.request, answer, begin)
            async for piece in self._pieces(seq, question.sees_jobs):
                await written(question.request, answer, piece)
        return answer

    @contextmanager
    def _one_more(self) -> Iterator[None]:
        if self._streams >= MOST_STREAMS:
            raise ApiError("too_many", f"{MOST_STREAMS} streams are open, and no more can be")
        self._streams += 1
        try:
            yield
        finally:
            self._streams -= 1

    def _begin(self, wanted: int | None) -> tuple[int, bytes]:
        """The number after which events are told, and what is told before them.

        That is a `gap` where retention removed some of them, or the number is of another history.
        """
        retry = b"retry: %d\n\n" % RECONNECT_MS
        last = self._agent.history.last_seq()
        if wanted is None:
            return last, retry
        next_seq = self._agent.history.first_seq() or last + 1
        if next_seq - 1 <= wanted <= last:
            return wanted, retry
        if wanted > last:
            next_seq = last + 1
        return next_seq - 1, retry + _piece("gap", next_seq - 1, GapItem(wanted, next_seq))

    async def _pieces(self, seq: int, sees_jobs: bool) -> AsyncIterator[bytes]:
        while not self._is_closed:
            more, before = self._more, seq
            seq, piece = await in_thread(self._executor, self._read, seq, sees_jobs)
            if piece:
                yield piece
            elif seq == before and not await _set_within(more, PING_SECONDS):
                yield b": ping\n\n"

    def _read(self, seq: int, sees_jobs: bool) -> tuple[int, bytes]:
        """The next events, as they are sent, and the number of the last."""
        found = self._agent.history.events_after(seq, _AT_ONCE)
        events = [event for _number, event in found]
        told_as = _Items(self._agent, self._names(), events, sees_jobs)
        told = [
            _piece(str(event.__struct_config__.tag), number, item)
            for number, event in found
            if (item := told_as.of(event)) is not None
        ]
        return (found[-1][0] if found else seq), b"".join(told)


def _piece(kind: str, number: int, item: object) -> bytes:
    return b"event: %b\nid: %d\ndata: %b\n\n" % (kind.encode(), number, encoded(item))


def _wanted(question: Question) -> int | None:
    """The header comes first: a browser sends it beside the query it began with."""
    written = question.request.headers.get("Last-Event-ID")
    if not written:
        number: int | None = question.values["last_event_id"]
        return number
    try:
        return int(_LAST_EVENT_ID.parse(written, 0))
    except ValueError:
        raise bad("Last-Event-ID", _LAST_EVENT_ID.right) from None


class _Items:
    """Items of some events, as the agent knows ports and incidents now."""

    def __init__(
        self, agent: Teller, names: Names, events: Sequence[Event], sees_jobs: bool
    ) -> None:
        self._sees_jobs = sees_jobs
        self._names = names
        flaps = [event.id for event in events if isinstance(event, Outage)]
        self._losses = agent.history.losses(flaps) if sees_jobs else {}

    def of(self, event: Event) -> object | None:
        """None for what may not be told, and for a port that has been forgotten since."""
        if isinstance(event, Outage):
            return flap_item(event, loss=self._losses.get(event.id))
        if isinstance(event, PortChange):
            return self._names.changed(event)
        return self._of_jobs(event) if self._sees_jobs else None

    def _of_jobs(self, event: Fault | Stall | Job | Incident) -> object:
        if isinstance(event, Fault):
            return fault_item(event)
        if isinstance(event, Stall):
            return stall_item(event, self._names.naming(event.node))
        if isinstance(event, Job):
            return job_item(event, self._names.naming(event.node))
        return incident_item(event)


async def _set_within(event: asyncio.Event, seconds: float) -> bool:
    try:
        await asyncio.wait_for(event.wait(), seconds)
    except asyncio.TimeoutError:
        return False
    return True


def _call_in(loop: asyncio.AbstractEventLoop, function: Callable[[], None]) -> None:
    with suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(function)
