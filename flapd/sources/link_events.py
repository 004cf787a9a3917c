"""LinkEvents: follows the netdevs behind the ports, and has those ports read whose link moved."""

import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from flapd.model.observation import LinkHint
from flapd.model.port import Port

if TYPE_CHECKING:
    from flapd.sources.rtnetlink import LinkFollower

ENDS_WITHIN_SECONDS = 0.3
ON = "on"

_log = structlog.get_logger("flapd.rtnetlink")


class LinkEvents:
    """Used from any thread; nothing here waits for the kernel."""

    def __init__(
        self,
        sysfs: Path,
        silent: str | None,
        put: Callable[[LinkHint], object],
        read_now: Callable[[Collection[str]], None],
    ) -> None:
        """`silent` is why nothing is to be listened to, if that is so. `put` must not wait."""
        self._sysfs = sysfs
        self._silent = silent
        self._put = put
        self._read_now = read_now
        self._keys: Mapping[str, frozenset[str]] = {}
        """Of the ports behind each netdev."""
        self._follower: LinkFollower | None = None
        self._trouble: str | None = None
        self._lock = threading.Lock()
        self._stopping = False

    def start(self) -> None:
        """In a thread: what it imports takes as long as a flap, and the ports are read already."""
        if self._silent is None:
            threading.Thread(target=self._begin, name="rtnetlink-start", daemon=True).start()

    def follow(self, ports: Iterable[Port]) -> None:
        """The netdevs of these ports, and the members of their bonds, from now on."""
        keys: dict[str, frozenset[str]] = {}
        for port in ports:
            for netdev in _netdevs_of(port):
                keys[netdev] = keys.get(netdev, frozenset()) | {port.key}
        self._keys = keys
        if self._follower is not None:
            self._follower.follow(keys)

    def of(self, port: Port) -> str:
        """`on`, or why it tells nothing of this port now."""
        netdevs = _netdevs_of(port)
        if self._silent is not None:
            return self._silent
        if not netdevs:
            return "no netdev is behind this port"
        if self._follower is None:
            return "it has not begun yet"
        if self._follower.trouble is not None:
            return f"the kernel does not tell: {self._follower.trouble}"
        return next((why for dev, why in self._follower.strangers.items() if dev in netdevs), ON)

    @property
    def overruns(self) -> int:
        """How often the kernel told more than there was room for: then all are asked anew."""
        return 0 if self._follower is None else self._follower.overruns

    def look(self) -> None:
        """Logs it once where it stops telling or tells again."""
        trouble = None if self._follower is None else self._follower.trouble
        if trouble != self._trouble and self._follower is not None:
            self._trouble = trouble
            if trouble is None:
                _log.info("rtnetlink_tells", overruns=self.overruns)
            else:
                _log.warning("rtnetlink_silent", reason=trouble, overruns=self.overruns)

    def stop(self) -> None:
        with self._lock:
            self._stopping = True
            follower = self._follower
        if follower is not None:
            follower.stop(ENDS_WITHIN_SECONDS)

    def _begin(self) -> None:
        from flapd.sources.rtnetlink import LinkFollower  # noqa: PLC0415 - see `start`

        follower = LinkFollower(self._sysfs, self._take)
        with self._lock:
            if self._stopping:
                return
            follower.follow(self._keys)
            follower.start()
            self._follower = follower

    def _take(self, hint: LinkHint) -> None:
        """What was not asked for says that something happened just now."""
        self._put(hint)
        if hint.asked_ns is None:
            self._read_now(self._keys.get(hint.netdev, frozenset()))


def _netdevs_of(port: Port) -> tuple[str, ...]:
    return port.members if port.netdev is None else (port.netdev, *port.members)
