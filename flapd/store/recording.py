"""A recording: exactly the observations that the engine got, so that replay tells the same.

A magic line, then frames (frames.py) of msgpack. Each start of a writer adds a Header;
a StateFrame holds the engine's checkpoint in force where it stands.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeAlias

import msgspec

from flapd.model.errors import FlapdError
from flapd.model.observation import Observation
from flapd.store.files import create_file
from flapd.store.frames import MAX_PAYLOAD_BYTES, FrameError, encode_frame, read_frames

FORMAT_VERSION = 1
_MAGIC = b"flapd recording 1\n"
_BUFFER_BYTES = 1 << 20
_PER_FRAME = 64


class RecordingError(FlapdError):
    """A recording cannot be read or written."""


class RecordingFullError(RecordingError):
    """The recording has reached the size it may have; nothing was written."""


class Header(msgspec.Struct, frozen=True, tag="header"):
    """Who recorded what follows."""

    version: str
    """Of flapd."""
    node: str
    format_version: int = FORMAT_VERSION


class StateFrame(msgspec.Struct, frozen=True, tag="state"):
    """The engine's checkpoint in force when it was (re)started here."""

    parts: dict[str, bytes]


Entry: TypeAlias = Header | StateFrame | Observation
_Payload: TypeAlias = Header | StateFrame | list[Observation]

_encode = msgspec.msgpack.Encoder().encode


def read_recording(
    path: Path, passed: Callable[[int], None] = lambda _bytes: None
) -> Iterator[Entry]:
    """Everything recorded, in order, one frame in memory at a time.

    `passed` is told how many bytes are behind. A last frame that was not written to its end
    is left out. RecordingError where the file is no recording or is damaged.
    """
    decode = msgspec.msgpack.Decoder(_Payload).decode
    with _told(path), path.open("rb", buffering=_BUFFER_BYTES) as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise RecordingError(f"{path} is no recording of flapd")
        for end, payload in read_frames(file):
            passed(end)
            try:
                entry = decode(payload)
            except msgspec.MsgspecError as error:
                raise FrameError(end - len(payload), str(error)) from error
            if isinstance(entry, list):
                yield from entry
            else:
                yield entry


class RecordingWriter:
    """Writes a recording, behind what is recorded in the file already.

    RecordingError where the file is something else or cannot be written,
    RecordingFullError where it would pass `max_bytes`.
    """

    def __init__(self, path: Path, node: str, version: str, max_bytes: int) -> None:
        self._path = path
        self._max_bytes = max_bytes
        with _told(path):
            self._size = _end_of_frames(path)
            self._file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            self._cut()
            header = encode_frame(_encode(Header(version, node)))
            self._write(header if self._size else _MAGIC + header)
        except BaseException:
            self.close()
            raise

    def state(self, parts: Mapping[str, bytes]) -> None:
        """Record the checkpoint from which the engine starts here."""
        self._write(self._frame(StateFrame(dict(parts))))

    def observations(self, batch: Sequence[Observation]) -> None:
        """Record the batch: all of it, or nothing where this raises."""
        starts = range(0, len(batch), _PER_FRAME)
        frames = [self._frame(list(batch[start : start + _PER_FRAME])) for start in starts]
        self._write(b"".join(frames))

    def close(self) -> None:
        os.close(self._file)

    def _frame(self, entry: _Payload) -> bytes:
        payload = _encode(entry)
        if len(payload) > MAX_PAYLOAD_BYTES:
            raise RecordingError(f"{self._path}: a frame would pass {MAX_PAYLOAD_BYTES} bytes")
        return encode_frame(payload)

    def _write(self, data: bytes) -> None:
        if self._size + len(data) > self._max_bytes:
            raise RecordingFullError(f"{self._path} has reached {self._max_bytes} bytes")
        with _told(self._path):
            try:
                self._write_whole(data)
            except OSError:
                self._cut()
                raise
        self._size += len(data)

    def _write_whole(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._file, rest) :]

    def _cut(self) -> None:
        """Leave nothing behind the last whole frame."""
        os.ftruncate(self._file, self._size)
        os.lseek(self._file, self._size, os.SEEK_SET)


def _end_of_frames(path: Path) -> int:
    """Offset behind the last whole frame; 0 for a new file, which is made."""
    with suppress(FileExistsError):
        os.close(create_file(path))
    with path.open("rb", buffering=_BUFFER_BYTES) as file:
        magic = file.read(len(_MAGIC))
        if not _MAGIC.startswith(magic):
            raise RecordingError(f"{path} is no recording of flapd and is left as it is")
        if magic != _MAGIC:
            return 0
        return max((end for end, _payload in read_frames(file)), default=len(_MAGIC))


@contextmanager
def _told(path: Path) -> Iterator[None]:
    try:
        yield
    except FrameError as error:
        raise RecordingError(f"{path}: frame at byte {error.offset}: {error.reason}") from error
    except OSError as error:
        raise RecordingError(f"recording {path}: {error.strerror}") from error
