"""Claims: which device a port's identity belongs to, between the readers of all devices."""

import threading
from collections import Counter

from msgspec.structs import replace

from flapd.model.port import Port

DISPUTED_ROUNDS = 3
"""Names of devices may be swapped: the other lets go when it looks again. Longer than that,
two devices really say the same of themselves (soft RoCE devices on VLANs of one netdev do)."""


class Claims:
    """Used from the threads of all readers."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._holders: dict[str, str] = {}
        self._disputes: Counter[tuple[str, str]] = Counter()
        self._twins: set[str] = set()
        """Identities that more than one device has: nobody's alone."""

    def claim(self, device: str, port: Port) -> Port | None:
        """The port under the identity that is its own; None while another device holds that."""
        *shared, own = _identities(device, port)
        with self._lock:
            for key in shared:
                if key in self._twins:
                    continue
                if self._holders.setdefault(key, device) == device:
                    del self._disputes[device, key]
                    return replace(port, key=key)
                self._disputes[device, key] += 1
                if self._disputes[device, key] < DISPUTED_ROUNDS:
                    return None
                self._twins.add(key)
            self._holders[own] = device
            return replace(port, key=own)

    def release(self, device: str, but: frozenset[str] = frozenset()) -> None:
        """Lets go of what the device holds, except for some keys."""
        with self._lock:
            self._holders = {
                key: holder
                for key, holder in self._holders.items()
                if holder != device or key in but
            }

    def keys(self) -> frozenset[str]:
        with self._lock:
            return frozenset(self._holders)


def _identities(device: str, port: Port) -> tuple[str, ...]:
    """The best first; planes of one card share even its PCI address."""
    member = f"/{port.member}" if port.member else ""
    name = f"{port.number}{member}"
    by_name = f"{port.guid}@{device}/{name}"
    if port.pci is None:
        return port.key, by_name
    return port.key, f"{port.guid}@{port.pci}/{name}", by_name
