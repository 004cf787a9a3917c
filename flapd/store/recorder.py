"""The recorder: writes down what the engine takes, for as long as it was asked to.

The request lies beside the recording, so that an agent which was killed goes on with
it after its restart.
"""

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import structlog

from flapd.model.observation import Observation
from flapd.model.times import SECOND_NS
from flapd.store.recording import RecordingError, RecordingWriter

_log = structlog.get_logger("flapd.recorder")


class Request(msgspec.Struct, frozen=True):
    until_unix_ns: int
    most_bytes: int


class Recorder:
    """Used from the engine's thread alone."""

    def __init__(self, directory: Path, node: str, version: str) -> None:
        self.path = directory / "observations.rec"
        self.request: Request | None = None
        """None where nothing is being recorded."""
        self._request_path = directory / "request.json"
        self._node = node
        self._version = version
        self._writer: RecordingWriter | None = None

    def start(self, request: Request, checkpoint: Mapping[str, bytes]) -> None:
        """Begins a new recording in place of the last one; RecordingError where it cannot."""
        self.stop()
        self._request_path.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
        self.path.unlink(missing_ok=True)
        self._request_path.write_bytes(msgspec.json.encode(request))
        self._open(request, checkpoint)

    def resume(self, checkpoint: Mapping[str, bytes]) -> None:
        """Goes on with what an earlier agent was asked for, if it was and is not over."""
        try:
            request = msgspec.json.decode(self._request_path.read_bytes(), type=Request)
        except FileNotFoundError:
            return
        except (OSError, msgspec.MsgspecError) as error:
            _log.warning("recording_request_unreadable", error=str(error))
            return
        if request.until_unix_ns <= time.time_ns():
            self._request_path.unlink(missing_ok=True)
            return
        try:
            self._open(request, checkpoint)
        except RecordingError as error:
            _log.warning("recording_ended", error=str(error))
            self.stop()

    def write(self, batch: Sequence[Observation]) -> None:
        """Before the events of this batch are committed. A recording that fails ends itself."""
        if self.request is None or self._writer is None:
            return
        try:
            self._writer.observations(batch)
        except RecordingError as error:
            _log.warning("recording_ended", error=str(error))
            self.stop()
            return
        if time.time_ns() > self.request.until_unix_ns:
            self.stop()

    def stop(self) -> None:
        """Ends the recording; its file stays."""
        self.close()
        with suppress(OSError):  # a directory that became read-only must not end the agent
            self._request_path.unlink(missing_ok=True)

    def close(self) -> None:
        """Closes the file, for an agent that ends and will go on."""
        if self._writer is not None:
            self._writer.close()
        self._writer = self.request = None

    def _open(self, request: Request, checkpoint: Mapping[str, bytes]) -> None:
        self._writer = RecordingWriter(
            self.path, node=self._node, version=self._version, max_bytes=request.most_bytes
        )
        self._writer.state(checkpoint)
        self.request = request
        _log.info("recording", path=str(self.path), seconds_left=self._seconds_left(request))

    def _seconds_left(self, request: Request) -> float:
        return round((request.until_unix_ns - time.time_ns()) / SECOND_NS, 1)
