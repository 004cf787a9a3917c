"""RecordingApi: record this node's observations; on the Unix socket only."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import BinaryIO

import structlog
from aiohttp import web

from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.agent import Agent, RecordingStatus
from flapd.serve.answers import encoded, in_thread, json_answer, written
from flapd.serve.errors import ApiError
from flapd.serve.items import RECORDING_ACTIVE, RECORDING_PATH, RecordingItem
from flapd.serve.parameter import bad, span, whole
from flapd.serve.route import Question, Route

DEFAULT_LENGTH = "10m"
LONGEST = "24h"
DEFAULT_BYTES = 1 << 30
UNREAD_SECONDS = 30.0
"""A recording that nobody reads for so long ends: whoever began it is gone."""

_CHUNK_BYTES = 64 << 10
_LOOKS = 10

_log = structlog.get_logger()


def recording_item(status: RecordingStatus) -> RecordingItem:
    until = rfc3339(status.until_unix_ns) if status.active else None
    return RecordingItem(status.path, status.bytes, status.active, until)


class RecordingApi:
    """Handlers that start, stop, and hand out one recording at a time."""

    def __init__(self, agent: Agent, executor: Executor) -> None:
        self._agent = agent
        self._executor = executor
        self._one_at_a_time = asyncio.Lock()
        self._read_at = time.monotonic()

    def routes(self) -> Iterable[Route]:
        length = (
            span("for", default=DEFAULT_LENGTH, shortest="1ms", longest=LONGEST),
            whole("max_bytes", default=DEFAULT_BYTES),
        )
        return (
            Route("POST", RECORDING_PATH, "Begin a recording", self._start, RecordingItem, length),
            Route(
                "GET",
                RECORDING_PATH,
                "The recording; with `offset` its bytes from there on",
                self._read,
                RecordingItem,
                (whole("offset"),),
                streams=("application/octet-stream",),
            ),
            Route("DELETE", RECORDING_PATH, "End the recording", self._stop, RecordingItem),
        )

    async def end_unread(self, _app: web.Application) -> AsyncIterator[None]:
        """While the application runs; what an earlier agent began counts from its start."""
        watching = asyncio.create_task(self._watch())
        yield
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching

    async def _watch(self) -> None:
        while True:
            await asyncio.sleep(UNREAD_SECONDS / _LOOKS)
            if time.monotonic() - self._read_at >= UNREAD_SECONDS:
                await in_thread(self._executor, self._end_recording)
                self._read_at = time.monotonic()

    def _end_recording(self) -> None:
        try:
            status = self._agent.recording()
            if status is not None and status.active:
                _log.warning("recording_unread", path=status.path, seconds=UNREAD_SECONDS)
                self._agent.stop_recording()
        except (FlapdError, OSError) as error:
            _log.error("recording_not_ended", error=str(error))

    async def _start(self, question: Question) -> web.Response:
        async with self._one_at_a_time:
            running = await self._status()
            if running is not None and running.active:
                until = rfc3339(running.until_unix_ns)
                raise ApiError("too_many", f"a recording runs until {until}; only one can")
            self._read_at = time.monotonic()
            status = await in_thread(self._executor, self._begin, question)
        return json_answer(encoded(recording_item(status)))

    def _begin(self, question: Question) -> RecordingStatus:
        seconds = question.values["for"] / SECOND_NS
        try:
            return self._agent.start_recording(seconds, question.values["max_bytes"])
        except FlapdError as error:
            raise ApiError("unavailable", str(error)) from error

    async def _stop(self, _question: Question) -> web.Response:
        status = await in_thread(self._executor, self._agent.stop_recording)
        return json_answer(encoded(recording_item(_existing(status))))

    async def _status(self) -> RecordingStatus | None:
        return await in_thread(self._executor, self._agent.recording)

    async def _read(self, question: Question) -> web.StreamResponse:
        # The status comes first: what is not active any more has its last byte in the file.
        status = _existing(await self._status())
        offset = question.values["offset"]
        if offset is None:
            return json_answer(encoded(recording_item(status)))
        file, size = await in_thread(self._executor, _open, status.path)
        with file:
            if offset > size:
                raise bad("offset", f"at most {size}")
            return await self._stream(question.request, file, range(offset, size), status.active)

    async def _stream(
        self, request: web.Request, file: BinaryIO, span: range, active: bool
    ) -> web.StreamResponse:
        answer = web.StreamResponse(headers={RECORDING_ACTIVE: str(int(active))})
        answer.content_type = "application/octet-stream"
        answer.content_length = len(span)
        await answer.prepare(request)
        self._read_at = time.monotonic()
        file.seek(span.start)
        left = len(span) if request.method != "HEAD" else 0
        while left:
            chunk = await in_thread(self._executor, file.read, min(left, _CHUNK_BYTES))
            if not chunk:
                raise ConnectionResetError("the recording became shorter")
            await written(request, answer, chunk)
            self._read_at = time.monotonic()
            left -= len(chunk)
        await answer.write_eof()
        return answer


def _existing(status: RecordingStatus | None) -> RecordingStatus:
    if status is None:
        raise ApiError("not_found", "there is no recording")
    return status


def _open(path: str) -> tuple[BinaryIO, int]:
    try:
        file = Path(path).open("rb")  # noqa: SIM115 - the caller closes it
    except FileNotFoundError:
        raise ApiError("not_found", "the recording is gone") from None
    return file, file.seek(0, 2)
