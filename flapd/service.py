"""Service manager: what systemd is told of the agent (sd_notify(3)); nothing where nobody asked."""

import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence

import structlog

from flapd.core.fabric.view import PortView, Snapshot

_SEND_SECONDS = 0.5
_NANOSECONDS_A_MICROSECOND = 1000
_MOST_NAMED = 4
"""Of each kind, so that the line stays one."""

_log = structlog.get_logger("flapd.service")


class ServiceManager:
    """Tells whoever started us how we are; a manager that does not listen changes nothing."""

    def __init__(
        self, environment: Mapping[str, str], now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._address = _address(environment.get("NOTIFY_SOCKET", ""))
        self._watchdog_ns = _watchdog_ns(environment)
        self._now_ns = now_ns
        self._feed_at_ns = 0
        self._status = ""
        self._is_deaf = False

    def starting(self, within_seconds: float) -> None:
        """It may take this long until we are ready: an agent before us may still hold the lock."""
        self._tell(f"EXTEND_TIMEOUT_USEC={round(within_seconds * 1_000_000)}")

    def ready(self) -> None:
        self._tell("READY=1")

    def reloading(self) -> None:
        """Ends with `ready`, whatever became of it."""
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={self._now_ns() // _NANOSECONDS_A_MICROSECOND}")

    def stopping(self) -> None:
        self._tell("STOPPING=1")

    def tell_status(self, line: str) -> None:
        """What `systemctl status` shows; told when it changes."""
        if line != self._status and self._tell(f"STATUS={line}"):
            self._status = line

    def feed_watchdog(self, engine_turned_ns: int) -> None:
        """To be called often: that it is called shows that the loop runs.

        `engine_turned_ns` is when the engine last had done a turn, which it has to do every
        second; where it has not for half the watchdog's time, nothing is told.
        """
        if self._watchdog_ns is None:
            return
        now_ns = self._now_ns()
        if now_ns < self._feed_at_ns or now_ns - engine_turned_ns > self._watchdog_ns // 2:
            return
        if self._tell("WATCHDOG=1"):
            self._feed_at_ns = now_ns + self._watchdog_ns // 3

    def _tell(self, message: str) -> bool:
        if self._address is None:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.settimeout(_SEND_SECONDS)
                sender.sendto(message.encode(), self._address)
        except OSError as error:
            if not self._is_deaf:
                _log.warning("service_manager_deaf", error=str(error))
            self._is_deaf = True
            return False
        self._is_deaf = False
        return True


def _address(written: str) -> str | None:
    """A path, or an abstract name behind `@`; None where there is no manager on a Unix socket."""
    if written.startswith("@"):
        return "\0" + written[1:]
    return written if written.startswith("/") else None


def _watchdog_ns(environment: Mapping[str, str]) -> int | None:
    """Nanoseconds; None where no watchdog waits for this process."""
    microseconds = environment.get("WATCHDOG_USEC", "")
    for_process = environment.get("WATCHDOG_PID", str(os.getpid()))
    if not microseconds.isdecimal() or int(microseconds) == 0 or for_process != str(os.getpid()):
        return None
    return int(microseconds) * _NANOSECONDS_A_MICROSECOND


def status_line(snapshot: Snapshot, reasons: Sequence[str]) -> str:
    """What is watched and what is wrong, in one line; `reasons` are why it is not ready."""
    present = [view for view in snapshot.ports if view.present]
    watched = [view for view in present if view.watched]
    wrong = {
        "down": [view for view in watched if view.up is False],
        "flapping": [view for view in watched if view.flapping],
        "cannot be read": [view for view in watched if not view.readable and view.errors],
    }
    parts = [f"{len(watched)} of {len(present)} ports watched"]
    parts += [f"{what}: {_names(views)}" for what, views in wrong.items() if views]
    parts += [f"reader hangs: {device}" for device in sorted(snapshot.stuck_readers)]
    parts += reasons[:_MOST_NAMED]
    return "; ".join(parts)


def _names(views: Sequence[PortView]) -> str:
    names = ", ".join(view.port.name for view in views[:_MOST_NAMED])
    more = len(views) - _MOST_NAMED
    return f"{names} and {more} more" if more > 0 else names
