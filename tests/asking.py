"""Asking: whoever runs flapd, over its socket; with what any Python has, in any machine."""

import faulthandler
import http.client
import json
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
_LEAST_LOOKS = 50


def wait_for(
    condition: Callable[[], T | None], what: str, within_seconds: float, every_seconds: float
) -> T:
    """Waits for what only asking can tell; fails naming what never came.

    A machine that stood still for a while gives everybody else some time as well.
    """
    deadline, looks = time.monotonic() + within_seconds, 0
    while time.monotonic() < deadline or looks < _LEAST_LOOKS:
        result = condition()
        if result:
            return result
        time.sleep(every_seconds)
        looks += 1
    faulthandler.dump_traceback()  # where all threads of this process are
    raise AssertionError(f"{what} did not come within {within_seconds} s")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path: Path, timeout_seconds: float = 10) -> None:
        super().__init__("localhost", timeout=timeout_seconds)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(str(self._path))


class Asked:
    """What an agent answers on this socket."""

    def __init__(self, path: Path, timeout_seconds: float = 10) -> None:
        self._path = path
        self._timeout_seconds = timeout_seconds

    def get(self, path: str) -> Any:
        return json.loads(self.get_text(path))

    def get_text(self, path: str) -> str:
        return self._answer(path)[1]

    def is_ready(self) -> bool:
        try:
            return self._answer("/readyz")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def _answer(self, path: str) -> tuple[int, str]:
        connection = UnixConnection(self._path, self._timeout_seconds)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()
