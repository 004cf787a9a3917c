"""Urgent: which ports of a device are to be read at once, and from when on that may be.

The kernel can tell of a port without end, and each reading asks the firmware: only so many
come at once, and what comes then waits a moment. The counters go on counting.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Collection

from flapd.model.times import SECOND_NS

MOST_AT_ONCE = 5
WITHIN_NS = SECOND_NS
NEVER_NS = 1 << 62


class Urgent:
    """Used from several threads."""

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.due_ns = NEVER_NS
        """When they may be read; NEVER_NS where there are none."""
        self._now_ns = now_ns
        self._lock = threading.Lock()
        self._keys: set[str] = set()
        self._taken_ns = deque([-WITHIN_NS] * MOST_AT_ONCE, MOST_AT_ONCE)

    def add(self, keys: Collection[str]) -> None:
        with self._lock:
            if keys:
                self._keys.update(keys)
                self.due_ns = self._taken_ns[0] + WITHIN_NS

    def take(self) -> frozenset[str]:
        """They are read now."""
        with self._lock:
            keys, self._keys = frozenset(self._keys), set()
            self._taken_ns.append(self._now_ns())
            self.due_ns = NEVER_NS
        return keys
