"""In parts: finds by halves what cannot be taken, and has all else taken."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from flapd.store.database import HistoryCorruptError

_T = TypeVar("_T")


def taken_in_parts(
    take: Callable[[Sequence[_T]], bool], items: Sequence[_T], leave_out: Callable[[_T], None]
) -> bool:
    """Has all taken in their order but those with which alone it fails; False where `take` ends.

    `leave_out` is called while that error is handled.
    """
    for part in _halves(items):
        try:
            goes_on = take(part)
        except HistoryCorruptError:
            raise
        except Exception:  # noqa: BLE001 - a fault of ours: one item must not keep all others out
            if len(part) > 1:
                goes_on = taken_in_parts(take, part, leave_out)
            else:
                leave_out(part[0])
                goes_on = True
        if not goes_on:
            return False
    return True


def _halves(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    middle = len(items) // 2
    yield from (part for part in (items[:middle], items[middle:]) if part)
