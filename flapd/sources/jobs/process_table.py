"""ProcessTable: which processes are to be looked at now, so that ten thousand others cost nothing.

What is new is looked at at once, and again while it is young: it may not have begun its program,
or not opened what makes it a rank. All others have their turns, a few of them each time: one may
become a rank late.
"""

from bisect import bisect_right
from collections.abc import Mapping

import msgspec

YOUNG_LOOKS = 3
OTHERS_A_LOOK = 100


class _Seen(msgspec.Struct):
    mark: int
    looks: int = 0


class ProcessTable:
    def __init__(self) -> None:
        self._seen: dict[int, _Seen] = {}
        self._others_after = 0
        """The last of the others that had its turn."""

    def due(self, present: Mapping[int, int]) -> list[int]:
        """Of all processes that are there, each with its mark (ProcFs.processes)."""
        seen = {
            pid: known
            if (known := self._seen.get(pid)) is not None and known.mark == mark
            else _Seen(mark)
            for pid, mark in present.items()
        }
        self._seen = seen
        young = [pid for pid, one in seen.items() if one.looks < YOUNG_LOOKS]
        due = [*young, *self._others()]
        for pid in due:
            seen[pid].looks += 1
        return due

    def _others(self) -> list[int]:
        old = sorted(pid for pid, one in self._seen.items() if one.looks >= YOUNG_LOOKS)
        begin = bisect_right(old, self._others_after)
        turn = (old[begin:] + old[:begin])[:OTHERS_A_LOOK]
        if turn:
            self._others_after = turn[-1]
        return turn
