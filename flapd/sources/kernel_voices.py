"""KernelVoices: what the kernel tells a sampler unasked.

Each word has the ports that it is about read at once, and says no more than that: words come
late, doubled, in the wrong order or not at all, and reading goes on whatever they do.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from errno import ENOBUFS
from pathlib import Path
from typing import Any, Protocol

from flapd.model.observation import KernelHint, KernelLine
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.concerned import Slots, is_of_line, is_of_verbs
from flapd.sources.kernel_log import KernelLog
from flapd.sources.listener import Listener
from flapd.sources.rdma_monitor import DeviceEvent, RdmaMonitor, open_monitor
from flapd.sources.rdma_netlink import RdmaNetlink
from flapd.sources.sampler_link import Orders
from flapd.sources.verbs import FATAL, VerbsEvents, VerbsHint

REPEATED_WITHIN_NS = SECOND_NS
"""A line that says the same again so soon is not told again."""
MOST_LINES_KNOWN = 1000

NOT_HELD = (
    "its driver could not let go of a device that is held open; "
    'with sources.verbs = "on" it is held all the same'
)


class Ports(Protocol):
    """What can be done about what is heard; from any thread, without waiting."""

    def hurry(self, concerns: Callable[[Port], bool]) -> bool:
        """Has the ports that it is about read at once; False where it is about none."""

    def look_again(self, device: str | None) -> None:
        """Has it found out which devices there are, and what of this one has changed."""

    def tell(self, message: KernelHint) -> bool: ...


class KernelVoices:
    """Listened to in one thread, that of verbs excepted, which is theirs."""

    def __init__(self, orders: Orders, ports: Ports) -> None:
        self._silent = orders.silent
        self._ports = ports
        self._slots = Slots(Path(orders.sysfs))
        self._told_lines: dict[KernelLine, int] = {}
        self._holds_any_driver = orders.holds_any_driver
        self._log = Listener(lambda: KernelLog(Path(orders.dev) / "kmsg"), self._hear_log)
        self._monitor = Listener(_monitor, self._hear_monitor)
        self._verbs: VerbsEvents | None = None
        if "verbs" not in self._silent:
            self._verbs = VerbsEvents(Path(orders.sysfs), self._hear_verbs)
            self._verbs.start()

    @property
    def listeners(self) -> Sequence[Listener[Any]]:
        """To be waited for and heard."""
        listeners: dict[str, Listener[Any]] = {
            "kernel_log": self._log,
            "rdma_netlink": self._monitor,
        }
        return [listeners[name] for name in listeners.keys() - self._silent.keys()]

    def hold(self, drivers: Mapping[str, bool]) -> None:
        """Has verbs tell of these devices; True: the driver lets go of one that is held."""
        if self._verbs is not None:
            self._verbs.hold(
                {
                    device: lets_go
                    for device, lets_go in drivers.items()
                    if lets_go or self._holds_any_driver
                }
            )

    def sources_of(self, device: str) -> dict[str, str]:
        """Why each does not tell of this device; "on" where it does."""
        return {
            "verbs": self._silent.get("verbs") or self._verbs_of(device),
            "kernel_log": self._silent.get("kernel_log") or self._log.trouble or "on",
        }

    def _verbs_of(self, device: str) -> str:
        assert self._verbs is not None
        return self._verbs.why_silent(device, otherwise=NOT_HELD) or "on"

    def _hear_log(self, log: KernelLog) -> None:
        for hint in log.read():
            line = hint.line

            def is_of(port: Port, line: KernelLine = line) -> bool:
                return is_of_line(line, port, self._slots)

            if self._ports.hurry(is_of) and not self._was_told(line):
                self._ports.tell(hint)

    def _was_told(self, line: KernelLine) -> bool:
        """Just now; each line is told once in so long."""
        now_ns = time.monotonic_ns()
        told_ns = self._told_lines.get(line)
        if told_ns is not None and now_ns - told_ns < REPEATED_WITHIN_NS:
            return True
        if len(self._told_lines) >= MOST_LINES_KNOWN:
            self._told_lines.clear()
        self._told_lines[line] = now_ns
        return False

    def _hear_monitor(self, monitor: RdmaMonitor) -> None:
        try:
            events = monitor.events()
        except OSError as error:
            if error.errno != ENOBUFS:
                raise
            events = [DeviceEvent("overrun", None)]
        for device in {event.device for event in events}:
            self._ports.look_again(device)

    def _hear_verbs(self, hint: VerbsHint) -> None:
        if hint.event == FATAL:
            self._ports.look_again(hint.device)
        self._ports.hurry(lambda port: is_of_verbs(hint, port))


def _monitor() -> RdmaMonitor:
    """OSError where this kernel has none."""
    netlink = RdmaNetlink()
    try:
        return open_monitor(netlink)
    finally:
        netlink.close()
