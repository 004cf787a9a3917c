"""Within: how long at most a command waits for what it asks."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import TypeVar

from flapd.model.errors import CouldNotFindOutError

_T = TypeVar("_T")


class SlowError(CouldNotFindOutError):
    """It took too long."""


def within(seconds: float, find_out: Callable[[], _T]) -> _T:
    """What `find_out` gives or raises; SlowError where that takes longer.

    On another thread, since a name service or a server may answer slowly, byte by byte.
    """
    ended: SimpleQueue[_T | Exception] = SimpleQueue()

    def run() -> None:
        try:
            ended.put(find_out())
        except Exception as error:  # noqa: BLE001 - raised to who asks
            ended.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        given = ended.get(timeout=seconds)
    except Empty:
        raise SlowError(f"no answer within {seconds:g} s") from None
    if isinstance(given, Exception):
        raise given
    return given
