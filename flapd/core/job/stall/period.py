"""Period: how long a step takes, from when traffic was busy in the last two minutes."""

import msgspec

from flapd.model.times import SECOND_NS

SLOT_NS = SECOND_NS // 10
_SLOTS = 1200
_BYTES = _SLOTS // 8
_ALL = (1 << _SLOTS) - 1
_SHORTEST, _LONGEST = 5, 600
"""Slots: from half a second to a minute, which is two periods in the window."""
_ALIKE = 0.3
_UNLIKE = 0.1


class Busy(msgspec.Struct):
    """One bit for each tenth of a second, the newest lowest."""

    bits: bytes = bytes(_BYTES)
    slot: int = 0
    first_slot: int | None = None

    def take(self, begin_ns: int, end_ns: int) -> None:
        """It was busy from `begin_ns` to `end_ns`."""
        first, last = begin_ns // SLOT_NS, max(begin_ns, end_ns - 1) // SLOT_NS
        if self.first_slot is None:
            self.first_slot = self.slot = first
        elif first == last == self.slot and self.bits[-1] & 1:
            return  # another port was busy then: so it is nearly always
        value = int.from_bytes(self.bits, "big")
        if last > self.slot:
            value = value << min(last - self.slot, _SLOTS) & _ALL
            self.slot = last
        age = self.slot - last
        if age < _SLOTS:
            value |= ((1 << (last - first + 1)) - 1) << age & _ALL
        self.bits = value.to_bytes(_BYTES, "big")

    def period_ns(self) -> int | None:
        """The first lag at which it repeats itself; None: it does not, or it is too early."""
        if self.first_slot is None:
            return None
        window = min(_SLOTS, self.slot - self.first_slot + 1)
        value = int.from_bytes(self.bits, "big") & ((1 << window) - 1)
        share = value.bit_count() / window
        if window < 4 * _SHORTEST or not 0.0 < share < 1.0:
            return None
        lags = range(_SHORTEST, min(_LONGEST, window // 2) + 1)
        likeness = [_likeness(value, window, lag, share) for lag in lags]
        lag = _first_peak(likeness)
        return None if lag is None else lags[lag] * SLOT_NS


def _likeness(value: int, window: int, lag: int, share: float) -> float:
    """Autocorrelation of a series of zeros and ones."""
    both = (value & (value >> lag)).bit_count() / (window - lag)
    return (both - share * share) / (share * (1.0 - share))


def _first_peak(likeness: list[float]) -> int | None:
    """The highest of the first hill behind a valley."""
    valley = next((at for at, one in enumerate(likeness) if one < _UNLIKE), len(likeness))
    begin = next((at for at in range(valley, len(likeness)) if likeness[at] >= _ALIKE), None)
    if begin is None:
        return None
    end = next((at for at in range(begin, len(likeness)) if likeness[at] < _ALIKE), len(likeness))
    return max(range(begin, end), key=lambda at: (likeness[at], -at))
