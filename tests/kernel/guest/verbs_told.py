"""A program: the events of a device's ports as verbs tell them, each with when it was read."""

import os
import select
import struct
import sys
import time
from contextlib import suppress
from pathlib import Path

from pyverbs.device import Context

from tests.kernel.guest.program import work

_PATIENCE_MS = 100
_RECORD = struct.Struct("=QII")
"""include/uapi/rdma/ib_user_verbs.h: ib_uverbs_async_event_desc"""
_PORTS = {9: "active", 10: "error"}


def main() -> None:
    context = Context(name=sys.argv[1])
    events = _descriptor()
    waiting = select.poll()
    waiting.register(events, select.POLLIN)
    told: list[tuple[str, int]] = []

    def turn() -> None:
        if waiting.poll(_PATIENCE_MS):
            _, kind, _ = _RECORD.unpack(os.read(events, _RECORD.size))
            if kind in _PORTS:
                told.append((_PORTS[kind], time.monotonic_ns()))

    work(turn, lambda: told)
    context.close()


def _descriptor() -> int:
    """Which pyverbs does not tell."""
    for fd in Path("/proc/self/fd").iterdir():
        with suppress(OSError):  # that of the directory itself
            if str(fd.readlink()) == "anon_inode:[infinibandevent]":
                return int(fd.name)
    raise FileNotFoundError("no descriptor of events was opened")


if __name__ == "__main__":
    main()
