"""Verbs events: a device tells that something happened to a port, or to itself.

Events come late, doubled and in the wrong order (drivers/infiniband/core/device.c has them
in a queue without order): each says only that the port must be read at once.

A context that is held keeps devices of some drivers from being removed, and nothing tells
the holder. So a device is held only where its driver lets go by itself, or where that is
asked for; and once its node is gone its context is closed, whatever the driver.

Records: include/uapi/rdma/ib_user_verbs.h: ib_uverbs_async_event_desc.
"""

import os
import select
import struct
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from flapd.sources.files import reason_of
from flapd.sources.verbs_device import HeldDevice, open_by_pyverbs

LOOK_EVERY_SECONDS = 0.25
"""For devices that are gone, while any is held whose driver does not tell."""
AGAIN_AFTER_SECONDS = 10.0
"""What could not be opened is tried again."""
MOST_AT_ONCE = 256

_RECORD = struct.Struct("=QII")
FATAL = "device_fatal"
"""The end of a device's events: it was removed, or its firmware failed."""

_OF_PORTS = {
    9: "port_active",
    10: "port_error",
    11: "lid_change",
    12: "pkey_change",
    13: "sm_change",
    17: "client_reregister",
    18: "gid_change",
}
"""enum ib_event_type (include/rdma/ib_verbs.h), which verbs share."""
_OF_DEVICES = {8: FATAL, 20: "device_speed_change"}


class VerbsHint(msgspec.Struct, frozen=True, array_like=True, tag="verbs"):
    """Something happened to a port, or to all of a device, before `monotonic_ns`."""

    device: str
    port: int | None
    event: str
    monotonic_ns: int
    """When it was read; narrows no bound, since it does not say whether it still holds."""


class VerbsEvents:
    """Holds devices open and tells their events, from a thread of its own."""

    def __init__(
        self,
        sysfs: Path,
        tell: Callable[[VerbsHint], None],
        open_device: Callable[[str], HeldDevice] = open_by_pyverbs,
        *,
        again_after_seconds: float = AGAIN_AFTER_SECONDS,
    ) -> None:
        """`tell` is called in that thread and must not wait."""
        self.refused: dict[str, str] = {}
        """Devices that are not held though they should be, and why."""
        self.trouble: str | None = None
        """Why no device tells anything; None while they do."""
        self._nodes = sysfs / "class/infiniband_verbs"
        self._tell = tell
        self._open_device = open_device
        self._again_after_seconds = again_after_seconds
        self._wanted: dict[str, bool] = {}
        self._held: dict[int, HeldDevice] = {}
        self._again_at: dict[str, float] = {}
        self._stopping = False
        self._epoll = select.epoll()
        self._woken = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self._epoll.register(self._woken, select.EPOLLIN)
        self._thread = threading.Thread(target=self._run, name="verbs", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def hold(self, devices: Mapping[str, bool]) -> None:
        """These and no others, from any thread; True: its driver lets go of a held device.

        Only devices that answer: opening one whose firmware is dead holds up all of Python.
        """
        if self._wanted != devices:
            self._wanted = dict(devices)
            os.eventfd_write(self._woken, 1)

    def stop(self, within_seconds: float) -> bool:
        """Lets go of all; False where it does not end within this."""
        self._stopping = True
        os.eventfd_write(self._woken, 1)
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def why_silent(self, device: str, *, otherwise: str) -> str | None:
        """None where its events are told; `otherwise` where it is not to be held."""
        if self.trouble is not None:
            return self.trouble
        if device not in self._wanted:
            return otherwise
        if any(held.device == device for held in list(self._held.values())):
            return None
        return self.refused.get(device, "it was not opened yet")

    def _run(self) -> None:
        """Without it everything else goes on."""
        try:
            while not self._stopping:
                self._turn()
        except Exception as error:  # noqa: BLE001 - the one broad handler, that of a source
            traceback.print_exc()
            self.trouble = f"it failed: {error!r}"
        for held in list(self._held.values()):
            with suppress(OSError):
                self._let_go(held)

    def _turn(self) -> None:
        self._let_go_of_the_gone()
        self._take_up_the_new()
        for fd, _ in self._epoll.poll(self._patience_seconds()):
            if fd == self._woken:
                os.eventfd_read(self._woken)
            elif fd in self._held:
                self._read(self._held[fd])

    def _patience_seconds(self) -> float | None:
        told = all(self._wanted.get(held.device) for held in self._held.values())
        return None if told and not self._again_at else LOOK_EVERY_SECONDS

    def _let_go_of_the_gone(self) -> None:
        for held in list(self._held.values()):
            if held.device not in self._wanted or not (self._nodes / held.node).exists():
                self._let_go(held)

    def _take_up_the_new(self) -> None:
        now = time.monotonic()
        known = {held.device for held in self._held.values()}
        self._again_at = {name: at for name, at in self._again_at.items() if name in self._wanted}
        self.refused = {name: why for name, why in self.refused.items() if name in self._again_at}
        for device in self._wanted.keys() - known:
            if self._again_at.get(device, 0.0) <= now:
                self._take_up(device)

    def _take_up(self, device: str) -> None:
        try:
            held = self._open_device(device)
        except OSError as error:
            self._refuse(device, error.strerror or str(error))
            return
        self._held[held.events] = held
        self._epoll.register(held.events, select.EPOLLIN)
        self._again_at.pop(device, None)
        self.refused.pop(device, None)

    def _refuse(self, device: str, why: str) -> None:
        self.refused[device] = why
        self._again_at[device] = time.monotonic() + self._again_after_seconds

    def _read(self, held: HeldDevice) -> None:
        for _ in range(MOST_AT_ONCE):
            try:
                record = os.read(held.events, _RECORD.size)
            except BlockingIOError:
                return
            except OSError as error:
                self._let_go(held)
                self._refuse(held.device, f"its events cannot be read: {reason_of(error)}")
                return
            hint = hint_of(held.device, record, time.monotonic_ns())
            if hint is not None:
                self._tell(hint)
            if not record or (hint is not None and hint.event == FATAL):
                self._let_go(held)
                self._refuse(held.device, "it was removed or failed")
                return

    def _let_go(self, held: HeldDevice) -> None:
        """First by epoll: it would go on holding the file, and that the device."""
        del self._held[held.events]
        self._epoll.unregister(held.events)
        held.close()


def hint_of(device: str, record: bytes, now_ns: int) -> VerbsHint | None:
    """None where it is no record, or of a queue, as a process gets for its own alone."""
    if len(record) != _RECORD.size:
        return None
    element, kind, _ = _RECORD.unpack(record)
    if kind in _OF_DEVICES:
        return VerbsHint(device, None, _OF_DEVICES[kind], now_ns)
    if kind in _OF_PORTS:
        return VerbsHint(device, element, _OF_PORTS[kind], now_ns)
    return None
