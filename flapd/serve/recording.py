"""RecordingApi: record this node's observations; on the Unix socket only."""

from collections.abc import Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import BinaryIO

from aiohttp import web

from flapd.model.errors import FlapdError
from flapd.model.times import rfc3339
from flapd.serve.agent import Agent, RecordingStatus
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.errors import ApiError
from flapd.serve.items import RECORDING_ACTIVE, RECORDING_PATH, RecordingItem
from flapd.serve.query import single_values, span_seconds, whole_number

DEFAULT_SECONDS = 600.0
LONGEST_SECONDS = 86_400.0
DEFAULT_BYTES = 1 << 30

_CHUNK_BYTES = 64 << 10


def recording_item(status: RecordingStatus) -> RecordingItem:
    until = rfc3339(status.until_unix_ns) if status.active else None
    return RecordingItem(status.path, status.bytes, status.active, until)


class RecordingApi:
    """Handlers that start, stop, and hand out one recording at a time."""

    def __init__(self, agent: Agent, executor: Executor) -> None:
        self._agent = agent
        self._executor = executor

    def routes(self) -> Iterable[web.RouteDef]:
        return (
            web.post(RECORDING_PATH, self._start),
            web.get(RECORDING_PATH, self._read),
            web.delete(RECORDING_PATH, self._stop),
        )

    async def _start(self, request: web.Request) -> web.Response:
        values = single_values(request.query.items(), ("for", "max_bytes"))
        seconds = span_seconds(values, "for", DEFAULT_SECONDS, LONGEST_SECONDS)
        max_bytes = whole_number(values, "max_bytes", DEFAULT_BYTES)
        running = await self._status()
        if running is not None and running.active:
            until = rfc3339(running.until_unix_ns)
            raise ApiError("too_many", f"a recording runs until {until}; only one can")
        try:
            status = await in_thread(
                self._executor, self._agent.start_recording, seconds, max_bytes
            )
        except FlapdError as error:
            raise ApiError("unavailable", str(error)) from error
        return json_answer(encoded(recording_item(status)))

    async def _stop(self, request: web.Request) -> web.Response:
        single_values(request.query.items(), ())
        status = await in_thread(self._executor, self._agent.stop_recording)
        return json_answer(encoded(recording_item(_existing(status))))

    async def _status(self) -> RecordingStatus | None:
        return await in_thread(self._executor, self._agent.recording)

    async def _read(self, request: web.Request) -> web.StreamResponse:
        values = single_values(request.query.items(), ("offset",))
        # The status comes first: what is not active any more has its last byte in the file.
        status = _existing(await self._status())
        if "offset" not in values:
            return json_answer(encoded(recording_item(status)))
        offset = whole_number(values, "offset", 0)
        file, size = await in_thread(self._executor, _open, status.path)
        with file:
            if offset > size:
                raise ApiError("bad_parameter", f"offset: at most {size}", "offset")
            return await self._stream(request, file, range(offset, size), status.active)

    async def _stream(
        self, request: web.Request, file: BinaryIO, span: range, active: bool
    ) -> web.StreamResponse:
        answer = web.StreamResponse(headers={RECORDING_ACTIVE: str(int(active))})
        answer.content_type = "application/octet-stream"
        answer.content_length = len(span)
        await answer.prepare(request)
        file.seek(span.start)
        left = len(span) if request.method != "HEAD" else 0
        while left:
            chunk = await in_thread(self._executor, file.read, min(left, _CHUNK_BYTES))
            if not chunk:
                raise ConnectionResetError("the recording became shorter")
            await answer.write(chunk)
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
