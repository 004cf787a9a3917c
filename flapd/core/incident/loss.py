"""Loss: what a story cost the job, in seconds of each of its GPUs."""

import msgspec

from flapd.model.loss import Parts, Range, Regime


class Loss(msgspec.Struct, frozen=True):
    regimes: dict[Regime, float]
    """The chance of each; empty where no job was hit."""
    lost_seconds: Range
    parts: Parts
    assumed_share: float

    @property
    def regime(self) -> Regime | None:
        return max(self.regimes, key=lambda one: self.regimes[one], default=None)
