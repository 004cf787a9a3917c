"""Loss: what became of a job by a flap, and the seconds it lost."""

from typing import Literal, get_args

import msgspec

Regime = Literal["hidden", "absorbed", "transport_abort", "watchdog", "failover"]
"""What the timeout policy makes of a flap."""
REGIMES: tuple[Regime, ...] = get_args(Regime)


class Parts(msgspec.Struct, frozen=True):
    """Where the lost seconds went; what did not happen is 0."""

    stall: float = 0.0
    detect: float = 0.0
    propagation: float = 0.0
    restart: float = 0.0
    rework: float = 0.0

    @property
    def lost(self) -> float:
        return self.stall + self.detect + self.downtime + self.rework

    @property
    def downtime(self) -> float:
        """After the detection: nothing runs."""
        return self.propagation + self.restart


class Range(msgspec.Struct, frozen=True):
    low: float
    likely: float
    high: float
