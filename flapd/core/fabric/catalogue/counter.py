"""Counter: what is known of one file, and what two readings of it mean."""

from typing import Literal

import msgspec

Tier = Literal["fast", "slow", "rare"]
Overflow = Literal["stops", "wraps", "unknown"]
Class = Literal["error", "traffic", "state"]
Kind = Literal["counter", "gauge"]
Meaning = Literal[
    "ack_timeout",
    "retransmitted",
    "retransmitted_bytes",
    "adaptive_timeout",
    "sequence_nak",
    "implied_nak",
    "out_of_sequence",
    "duplicate",
    "rnr_nak_received",
    "rnr_nak_sent",
    "retries_exhausted",
    "rnr_retries_exhausted",
    "completion_error",
    "completion_flushed",
    "cnp_received",
    "cnp_sent",
    "ecn_marked",
    "slow_restart",
    "icrc",
    "discard",
    "path_impaired",
    "link_down",
    "traffic",
]

RETRANSMISSION_CAUSES: tuple[Meaning, ...] = (
    "ack_timeout",
    "adaptive_timeout",
    "sequence_nak",
    "implied_nak",
    "rnr_nak_received",
    "retransmitted",
)
"""Why this port sent again; `retransmitted` is how often, where a driver counts that."""

_CLASSIC_STOP = (1 << 32) - 1


class Counter(msgspec.Struct, frozen=True):
    """One file: its name in node_exporter is `metric`, `scale` turns its unit into that one's."""

    name: str
    metric: str
    tier: Tier
    bits: int = 64
    overflow: Overflow = "wraps"
    scale: int = 1
    klass: Class = "error"
    kind: Kind = "counter"
    meaning: Meaning | None = None
    lag_ns: int = 0
    """How long it may take to count what the state already shows."""

    @property
    def stop(self) -> int | None:
        """The value at which it counts no further; None where it wraps or that is not known."""
        return (1 << self.bits) - 1 if self.overflow == "stops" else None

    def rise(self, last: int, value: int) -> int | None:
        """How far it rose; None where it was reset in between, or that cannot be told.

        A counter that wraps may be lower than before and have risen; a rise by more than
        half its range, and any fall of a counter that stops, is a reset. Where overflow is
        not known, a fall may be a wrap or a reset, and 2**32 - 1 may be a stop.
        """
        rise = value - last
        if self.overflow == "unknown":
            return None if rise < 0 or last == value == _CLASSIC_STOP else rise
        if self.overflow == "stops":
            return rise if rise >= 0 else None
        rise %= 1 << self.bits
        return rise if rise < 1 << (self.bits - 1) else None
