"""A service manager's end of the line: a real datagram socket that keeps what is told."""

import select
import socket
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 20.0


class Notified:
    """What was told to $NOTIFY_SOCKET, datagram by datagram."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind("\0" + address[1:] if address.startswith("@") else address)

    def next(self, within_seconds: float = PATIENCE_SECONDS) -> str | None:
        """None where nothing came for so long."""
        if not select.select([self._socket], [], [], within_seconds)[0]:
            return None
        return self._socket.recv(65536).decode()

    def until(self, wanted: Callable[[str], bool]) -> list[str]:
        """Everything told up to the first that is wanted, this one too."""
        heard: list[str] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            message = self.next(deadline - time.monotonic())
            if message is not None:
                heard.append(message)
                if wanted(message):
                    return heard
        raise AssertionError(f"it never came; what came was {heard}")

    def waiting(self) -> list[str]:
        """What has arrived and was not looked at yet."""
        heard = []
        while (message := self.next(0)) is not None:
            heard.append(message)
        return heard

    def close(self) -> None:
        self._socket.close()
        if not self.address.startswith("@"):
            Path(self.address).unlink(missing_ok=True)
