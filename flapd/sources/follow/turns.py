"""Turns: which thread reads what, so that a file which hangs stops no other.

All files of one file system have their turns in one reader of the lanes (sources/lanes.py): a
server that does not answer holds up its own files. One file may hang alone, behind a link to
elsewhere; then the others of its reader go on in another.
"""

import threading
import time
import traceback
from collections.abc import Callable
from typing import Protocol

from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.lanes import Lanes

HANGS_NS = 5 * SECOND_NS
MOST_HANGING = 4
"""Of one file system: then it is the file system that hangs, and its other files wait for it."""
AFTER_ERROR_NS = 5 * SECOND_NS
SLOW_NS = 100 * MILLISECOND_NS
_NOTHING_NS = 3600 * SECOND_NS


class Item(Protocol):
    """Something that is looked at again and again."""

    name: str
    due_ns: int
    is_over: bool

    def turn(self) -> None: ...
    def close(self) -> None: ...


class Failures(Protocol):
    def failed(self, name: str, error: OSError) -> None: ...
    def worked(self, name: str) -> None: ...


class FileSystem:
    """A reader of the lanes: gives turns to what lies on one file system."""

    has_looked = True
    failed_ns: int | None = None

    def __init__(self, device: str, failures: Failures, gone: Callable[[Item], None]) -> None:
        """`gone` is called with each item that is over."""
        self.device = device
        self.busy_with: Item | None = None
        self._since_ns = 0
        self._failures = failures
        self._gone = gone
        self._lock = threading.Lock()
        self._items: list[Item] = []
        self._is_stopped = False

    @property
    def next_turn_ns(self) -> int:
        return min(
            (item.due_ns for item in list(self._items)), default=time.monotonic_ns() + _NOTHING_NS
        )

    def add(self, item: Item) -> None:
        with self._lock:
            self._items.append(item)

    def turn(self) -> None:
        now_ns = time.monotonic_ns()
        for item in list(self._items):
            if item.due_ns <= now_ns and self._begins(item):
                self._give(item)
                self.busy_with = None

    def stop(self) -> None:
        self._is_stopped = True

    def close(self) -> None:
        for item in self._items:
            item.close()

    def busy_since(self) -> int | None:
        return self._since_ns if self.busy_with is not None else None

    def others(self) -> list[Item]:
        """Lets go of all but the one that hangs, for another reader to take."""
        with self._lock:
            freed = [item for item in self._items if item is not self.busy_with]
            self._items = [item for item in self._items if item is self.busy_with]
        return freed

    def __len__(self) -> int:
        return len(self._items)

    def _begins(self, item: Item) -> bool:
        with self._lock:
            if self._is_stopped or item not in self._items:
                return False
            self._since_ns, self.busy_with = time.monotonic_ns(), item
        return True

    def _give(self, item: Item) -> None:
        try:
            item.turn()
        except OSError as error:
            item.due_ns = time.monotonic_ns() + AFTER_ERROR_NS
            self._failures.failed(item.name, error)
        except Exception:  # noqa: BLE001 - the one broad handler: other files go on
            traceback.print_exc()
            item.is_over = True
        else:
            self._failures.worked(item.name)
        if item.is_over:
            with self._lock:
                self._items.remove(item)
            item.close()
            self._gone(item)


class Turns:
    """All that is read in turns; used from several threads."""

    def __init__(
        self,
        failures: Failures,
        after_round: Callable[[], None],
        gone: Callable[[Item], None],
        hangs_ns: int = HANGS_NS,
    ) -> None:
        self._failures = failures
        self._gone = gone
        self._hangs_ns = hangs_ns
        self._lock = threading.Lock()
        self._readers: dict[str, list[FileSystem]] = {}
        """Of each file system: the last takes what is new, those before it hang."""
        self._lanes = Lanes(after_round, slow_ns=SLOW_NS)

    def add(self, item: Item, device: str) -> None:
        with self._lock:
            readers = self._readers.setdefault(device, [])
            reader = readers[-1] if readers else self._new_reader(device)
            reader.add(item)
        self._lanes.wake(reader)

    def look(self) -> None:
        """To be called all the time by a thread that reads no file."""
        self._lanes.look()
        with self._lock:
            for device, readers in self._readers.items():
                self._free_from(device, readers)

    def hanging(self) -> dict[str, float]:
        """Names of what hangs, and for how many seconds."""
        now_ns = time.monotonic_ns()
        with self._lock:
            readers = [reader for several in self._readers.values() for reader in several]
        found = {}
        for reader in readers:
            item, since_ns = reader.busy_with, reader.busy_since()
            if item is not None and since_ns is not None and now_ns - since_ns > self._hangs_ns:
                found[item.name] = (now_ns - since_ns) / SECOND_NS
        return found

    def _new_reader(self, device: str) -> FileSystem:
        reader = FileSystem(device, self._failures, self._gone)
        self._readers.setdefault(device, []).append(reader)
        self._lanes.add(reader)
        return reader

    def _free_from(self, device: str, readers: list[FileSystem]) -> None:
        """What waits behind an item that hangs; and readers that were left with none end."""
        for idle in [reader for reader in readers[:-1] if len(reader) == 0]:
            readers.remove(idle)
            self._lanes.remove(idle)
        last = readers[-1]
        since_ns = last.busy_since()
        hangs = since_ns is not None and time.monotonic_ns() - since_ns > self._hangs_ns
        if hangs and len(last) > 1 and len(readers) <= MOST_HANGING:
            fresh = self._new_reader(device)
            for item in last.others():
                fresh.add(item)
