"""Happenings: what befalls a job, as its spec says it; times are seconds from its origin."""

from typing import TypeAlias

import msgspec

from simulators.fabric.schedule import NotNegative, Positive
from simulators.job.truth import CauseKind


class Outage(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    tag_field="kind",
    tag="outage",
):
    """A port of a node has no link for `down_seconds`, and no path `usable_after_seconds` longer.

    `gid_changes`: after it the address of a RoCE port is another, and connections never recover.
    """

    at_seconds: NotNegative
    down_seconds: Positive
    node: int = 0
    port: int = 0
    usable_after_seconds: NotNegative = 0.0
    gid_changes: bool = False

    @property
    def usable_at(self) -> float:
        return self.at_seconds + self.down_seconds + self.usable_after_seconds


class _OfRank(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, tag_field="kind"
):
    at_seconds: NotNegative
    rank: int


class SlowLoader(_OfRank, frozen=True, omit_defaults=True, tag="slow_loader", kw_only=True):
    """A rank gets its next batch so much later than the others."""

    late_seconds: Positive


class CodeHang(_OfRank, frozen=True, tag="code_hang"):
    """A rank's program waits for something else for ever: it joins no further collective."""


class OutOfStep(_OfRank, frozen=True, tag="out_of_step"):
    """A rank calls another collective than all others."""


class Died(_OfRank, frozen=True, omit_defaults=True, tag="died", kw_only=True):
    """A rank's process ends by itself: killed for its memory, or by its GPU."""

    exit_code: int = -9


class WatchdogStuck(_OfRank, frozen=True, tag="watchdog_stuck"):
    """A rank's GPU answers no more, and its watchdog waits inside the CUDA library."""


Happening: TypeAlias = Outage | SlowLoader | CodeHang | OutOfStep | Died | WatchdogStuck


def kind_of(happening: Happening) -> CauseKind:
    kind: CauseKind = happening.__struct_config__.tag  # type: ignore[assignment]
    return kind
