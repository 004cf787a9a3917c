"""Journal: what units write to systemd's journal, by journalctl, which alone knows its files."""

import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import Any

import msgspec

from flapd.core.job.clock import Clock
from flapd.core.job.sieve import Sieve
from flapd.core.job.stream import LogStream
from flapd.model.finding import Finding
from flapd.sources.follow.position import Position

KEY = "journal"
AGAIN_AFTER_SECONDS = 10.0
_CHUNK_BYTES = 64 * 1024
_LONGEST_ENTRY_BYTES = 1 << 20
_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
_COMMAND = ("journalctl", "--output=json", "--follow", "--no-pager", "--quiet")


class Entry(
    msgspec.Struct, frozen=True, rename={"cursor": "__CURSOR", "at": "__REALTIME_TIMESTAMP"}
):
    """journalctl(1), --output=json: what is no UTF-8 is an array of bytes, what is long is null."""

    cursor: str
    at: str
    """Microseconds since the epoch."""
    MESSAGE: str | list[int] | None = None
    SYSLOG_IDENTIFIER: Any = None
    _SYSTEMD_UNIT: Any = None

    @property
    def is_own(self) -> bool:
        """We quote faults in our log: reading it would tell them again."""
        return bool(self.SYSLOG_IDENTIFIER == "flapd" or self._SYSTEMD_UNIT == "flapd.service")

    def lines(self) -> bytes:
        """As a container's runtime would write them, so that each has its time."""
        text = self.MESSAGE or ""
        raw = text.encode() if isinstance(text, str) else bytes(byte & 0xFF for byte in text)
        stamp = (_EPOCH + timedelta(microseconds=int(self.at))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        return b"".join(stamp.encode() + b" " + line + b"\n" for line in raw.split(b"\n"))


class Journal:
    """Follows it in a thread of its own, for ever."""

    def __init__(
        self,
        node: str,
        sieve: Sieve,
        cursor: str,
        found: Callable[[list[Finding]], None],
        at: Callable[[Position], None],
    ) -> None:
        """Goes on behind `cursor`; "": from now on."""
        self.failure: str | None = None
        """Why it tells nothing."""
        self._stream = LogStream(KEY, scope=node, sieve=sieve)
        self._cursor = cursor
        self._found = found
        self._at = at
        self._told_ns = 0

    def start(self) -> None:
        threading.Thread(target=self._run, name="journal", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                self._follow()
            except OSError as error:
                self.failure = f"journalctl: {error.strerror}"
            time.sleep(AGAIN_AFTER_SECONDS)

    def _follow(self) -> None:
        where = f"--after-cursor={self._cursor}" if self._cursor else "--lines=0"
        with subprocess.Popen(
            [*_COMMAND, where],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as child:
            assert child.stdout is not None
            self.failure = None
            for line in _lines(child.stdout.fileno()):
                self.take(line)
        self.failure = f"journalctl ended with {child.returncode}"

    def take(self, line: bytes) -> None:
        """One entry, as journalctl writes it; one that cannot be read is left out."""
        try:
            entry = msgspec.json.decode(line, type=Entry)
            lines = b"" if entry.is_own else entry.lines()
        except (msgspec.MsgspecError, UnicodeDecodeError, ValueError, OverflowError):
            return
        findings = self._stream.feed(lines, Clock(arrived_ns=time.time_ns()))
        if findings:
            self._found(findings)
        self._cursor = entry.cursor
        if time.monotonic_ns() - self._told_ns > 1_000_000_000:
            self._told_ns = time.monotonic_ns()
            self._at(Position(KEY, time.time_ns(), cursor=entry.cursor))


def _lines(fd: int) -> Iterator[bytes]:
    """Each is bounded; of one that is longer the rest is left out."""
    rest = b""
    while chunk := os.read(fd, _CHUNK_BYTES):
        *whole, rest = (rest + chunk).split(b"\n")
        yield from whole
        rest = rest[:_LONGEST_ENTRY_BYTES]
