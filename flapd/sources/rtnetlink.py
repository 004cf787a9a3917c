"""rtnetlink: what the kernel tells of the netdevs behind ports, as soon as it tells it.

A message carries the counts of carrier losses and gains as they were when it was made:
those are facts. Its flags may be older than the link, since the kernel's link watch merges
what happens within a second (net/core/link_watch.c): a message like the last one whose
count rose is a flap that nothing else showed.
"""

import asyncio
import threading
import time
import traceback
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from errno import ENOBUFS, ENODEV, errorcode
from pathlib import Path
from socket import AF_UNSPEC
from typing import Any

from pyroute2 import AsyncIPRoute, NetlinkError

from flapd.model.observation import LinkHint
from flapd.sources.kernel_paths import netdev_identity

AGAIN_AFTER_SECONDS = 1.0
"""After the kernel refused, or told more than there was room for."""
ASK_EVERY_SECONDS = 60.0
"""An answer says which netdev it is that has these counts: it can be made anew."""
ROOM_BYTES = 1 << 20
"""For what the kernel told and nobody took yet."""

_GONE = "RTM_DELLINK"
_OF_LINKS = {"RTM_NEWLINK", _GONE}
_LINK_GROUP = 1
"""RTMGRP_LINK: by default pyroute2 hears of routes and neighbours as well."""


def hint_of(message: Any, asked_ns: int | None, received_ns: int) -> LinkHint | None:
    """None where it tells of no netdev: of a bridge's port, or that a question was answered."""
    if message.get("event") not in _OF_LINKS or message["family"] != AF_UNSPEC:
        return None
    carrier = message.get("carrier")
    return LinkHint(
        netdev=message.get("ifname"),
        index=message["index"],
        present=message["event"] != _GONE,
        carrier_downs=message.get("carrier_down_count"),
        carrier_ups=message.get("carrier_up_count"),
        carrier=None if carrier is None else bool(carrier),
        operstate=message.get("operstate"),
        flags=message["flags"],
        asked_ns=asked_ns,
        monotonic_ns=received_ns,
    )


class LinkFollower:
    """Tells of the netdevs it is to follow, from a thread of its own."""

    def __init__(
        self,
        sysfs: Path,
        tell: Callable[[LinkHint], None],
        *,
        again_after_seconds: float = AGAIN_AFTER_SECONDS,
        room_bytes: int = ROOM_BYTES,
    ) -> None:
        """`tell` is called in the follower's thread and must not wait."""
        self.overruns = 0
        """How often the kernel told more than there was room for: then all are asked anew."""
        self.trouble: str | None = "it has not begun yet"
        """Why it tells nothing now; None while it does."""
        self.strangers: Mapping[str, str] = {}
        """Netdevs of which it tells nothing, and why."""
        self._sysfs = sysfs
        self._tell = tell
        self._again_after_seconds = again_after_seconds
        self._room_bytes = room_bytes
        self._followed: frozenset[str] = frozenset()
        self._known: dict[str, tuple[int, str] | None] = {}
        """Numbers and addresses of those followed, as sysfs had them last."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._changed = asyncio.Event()
        self._stopping = False
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run()), name="rtnetlink", daemon=True
        )

    def start(self) -> None:
        self._thread.start()

    def follow(self, netdevs: Collection[str]) -> None:
        """These and no others; from any thread."""
        if self._followed != frozenset(netdevs):
            self._followed = frozenset(netdevs)
            self._wake()

    def stop(self, within_seconds: float) -> bool:
        """False where it does not end within this."""
        self._stopping = True
        self._wake()
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def _wake(self) -> None:
        if self._loop is not None:
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(self._changed.set)

    async def _run(self) -> None:
        self._loop = asyncio.get_running_loop()
        while not self._stopping:
            try:
                await self._session()
            except Exception as error:  # noqa: BLE001 - the one broad handler: listening goes on
                self._failed(error)
                await asyncio.sleep(self._again_after_seconds)

    def _failed(self, error: Exception) -> None:
        code = _code(error)
        if code is None:
            traceback.print_exception(error)
        self.overruns += code == ENOBUFS
        self.trouble = errorcode.get(code or 0, repr(error))

    async def _session(self) -> None:
        """It hears before it asks: nothing is missed in between."""
        async with AsyncIPRoute(rcvbuf=self._room_bytes) as route:
            await route.bind(groups=_LINK_GROUP)
            listening = asyncio.ensure_future(self._listen(route))
            try:
                while not self._stopping:
                    self._changed.clear()
                    await self._ask(route)
                    self.trouble = None
                    await self._until_changed(listening)
            finally:
                listening.cancel()
                await asyncio.wait({listening})

    async def _until_changed(self, listening: "asyncio.Future[None]") -> None:
        """Until others are to be followed, or all asked again; raises what ended the listening."""
        changed = asyncio.ensure_future(self._changed.wait())
        waited: set[asyncio.Future[Any]] = {listening, changed}
        await asyncio.wait(waited, timeout=ASK_EVERY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        changed.cancel()
        if listening.done():
            listening.result()

    async def _listen(self, route: AsyncIPRoute) -> None:
        while True:
            async for message in route.get():
                self._take(message, None)

    async def _ask(self, route: AsyncIPRoute) -> None:
        """Each by its number: a list of all the links of a thousand containers is long."""
        self._known, strangers = {}, {}
        for netdev in sorted(self._followed):
            identity = self._known[netdev] = netdev_identity(self._sysfs, netdev)
            if identity is None:
                strangers[netdev] = f"paths.sysfs does not say which netdev {netdev} is"
            elif not await self._ask_for(route, identity[0]):
                strangers[netdev] = f"the kernel knows another {netdev} here, or none"
        self.strangers = strangers

    async def _ask_for(self, route: AsyncIPRoute, index: int) -> bool:
        """Whether it is one that sysfs shows."""
        asked_ns = time.monotonic_ns()
        was_told = False
        try:
            for message in await route.link("get", index=index):
                was_told |= self._take(message, asked_ns)
        except NetlinkError as error:
            if error.code != ENODEV:
                raise
        return was_told

    def _take(self, message: Any, asked_ns: int | None) -> bool:
        """Tells it, where it is of a netdev that is followed."""
        hint = hint_of(message, asked_ns, time.monotonic_ns())
        if hint is None or not self._is_followed(hint.netdev, hint.index, message.get("address")):
            return False
        self._tell(hint)
        return True

    def _is_followed(self, netdev: str, index: int, address: str | None) -> bool:
        """Sysfs is asked where it is not the one known: it can be made anew, or be a stranger."""
        if netdev not in self._followed:
            return False
        if self._known.get(netdev) != (index, address):
            self._known[netdev] = netdev_identity(self._sysfs, netdev)
        return self._known[netdev] == (index, address)


def _code(error: Exception) -> int | None:
    """The errno, which pyroute2 calls otherwise."""
    code: int | None = getattr(error, "code", None) or getattr(error, "errno", None)
    return code
