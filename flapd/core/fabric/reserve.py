"""Reserve: the counter that counts on where the witness of an InfiniBand port stops.

`link_downed` has 8 bits and stops at 255; `link_down_events_phy` of the same port has 32
(mlx5/core/en_stats.c, PPCNT group 0x12). Each counts from a begin of its own, so one goes on
from the other only where both were read together while the link did not move.
"""

from collections.abc import Mapping

import msgspec

from flapd.core.fabric.catalogue import LINK_DOWN_EVENTS_PHY, LINK_DOWNED, stop_of
from flapd.core.fabric.ledger import Ledger
from flapd.model.observation import READ_STATISTICS, Sample
from flapd.model.times import SECOND_NS

AT_REST_NS = 3 * SECOND_NS
"""So long after the link moved both have counted it, and statistics were read anew."""

_STOP = stop_of(LINK_DOWNED) or 0
_WRAP = 1 << 32


class Pair(msgspec.Struct, frozen=True, array_like=True):
    """What both counted, the link being at rest."""

    witness: int
    reserve: int


class ReserveBook(msgspec.Struct):
    pair: Pair | None = None
    in_use: bool = False
    """Downs are counted by it."""
    disagrees: bool = False
    """The two did not count the same: it cannot stand in for the witness."""


class Reserve:
    """Has the ledger of a port count by the one or the other."""

    def __init__(self, book: ReserveBook, ledger: Ledger) -> None:
        self.book = book
        self._ledger = ledger
        self._moved_ns = ledger.book.read_until_ns
        """When the link moved last, as far as that is known."""
        if book.in_use:
            ledger.count_by(LINK_DOWN_EVENTS_PHY, ledger.book.witness.value)
        self._relieve()

    def look(
        self, sample: Sample, values: Mapping[str, int], errors: Mapping[str, str], *, moves: bool
    ) -> None:
        """A sample that the ledger has taken; `values` and `errors` are what stands now."""
        if moves:
            self._moved_ns = sample.after_ns
        if self._ledger.witness.name not in {LINK_DOWNED, LINK_DOWN_EVENTS_PHY}:
            return
        if self.book.in_use and LINK_DOWN_EVENTS_PHY in errors:
            self.book.pair = None
            self._give_back(_STOP)
        elif sample.reads & READ_STATISTICS and sample.before_ns - self._moved_ns >= AT_REST_NS:
            self._look_at_rest(values.get(LINK_DOWNED), values.get(LINK_DOWN_EVENTS_PHY))
        if not self.book.in_use and self._ledger.book.witness.value == _STOP:
            self._take_over()
        self._relieve()

    def forget(self) -> None:
        """Nothing that was counted so far goes on."""
        if self.book.in_use:
            self._give_back(None)
        self.book.pair = None
        self._moved_ns = self._ledger.book.read_until_ns
        self._relieve()

    @property
    def _can_count(self) -> bool:
        return self.book.pair is not None and not self.book.disagrees

    def _relieve(self) -> None:
        self._ledger.witness.is_relieved = self._can_count and not self.book.in_use

    def _look_at_rest(self, witness: int | None, reserve: int | None) -> None:
        if witness is None or reserve is None:
            return
        before, pair = self.book.pair, Pair(witness, reserve)
        self.book.pair = pair
        if before is not None and before.witness <= witness < _STOP:
            self._compare(before, pair)
        if self.book.in_use and witness < _STOP:  # somebody reset it
            self._give_back(witness)

    def _compare(self, before: Pair, pair: Pair) -> None:
        rise = (pair.reserve - before.reserve) % _WRAP
        was_reset = rise >= _WRAP // 2
        self.book.disagrees |= not was_reset and rise != pair.witness - before.witness

    def _take_over(self) -> None:
        pair = self.book.pair
        if pair is not None and self._can_count:
            self.book.in_use = True
            reached = (pair.reserve + _STOP - pair.witness) % _WRAP
            self._ledger.count_by(LINK_DOWN_EVENTS_PHY, reached)

    def _give_back(self, value: int | None) -> None:
        self.book.in_use = False
        self._ledger.count_by(LINK_DOWNED, value)
