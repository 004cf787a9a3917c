"""Program: one in the guest that works until its standard input ends, and tells then what it saw.

Run by Debian's Python, which has pyverbs.
"""

import json
import select
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from tests.kernel.guest.agent import PATIENCE_SECONDS

_PYTHON = "/usr/bin/python3"


class Program:
    """From when it has begun its work."""

    def __init__(self, module: str, *arguments: str) -> None:
        self._process = subprocess.Popen(
            [_PYTHON, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n", f"{module} did not begin"

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self) -> Any:
        """What it saw."""
        told, _ = self._process.communicate(timeout=PATIENCE_SECONDS)
        return json.loads(told)


def work(turn: Callable[[], None], told: Callable[[], Any]) -> None:
    """The program's side: a turn after the other until standard input ends."""
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while not _has_ended():
        turn()
    sys.stdout.write(json.dumps(told()))


def _has_ended() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])
