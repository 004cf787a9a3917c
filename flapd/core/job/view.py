"""JobsView: what may be shown of the jobs of this node, published after each commit."""

import msgspec

from flapd.model.fault import FAULT_KINDS
from flapd.model.job import Job
from flapd.model.stall import STALL_CLASSES, Stall


class JobTotals(msgspec.Struct):
    """What was found since flapd first ran here, of what is final; continues over restarts."""

    faults: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(FAULT_KINDS, 0))
    """By kind."""
    stalls: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(STALL_CLASSES, 0))
    """By class; those that are over."""
    stall_ns: dict[str, int] = msgspec.field(
        default_factory=lambda: dict.fromkeys(STALL_CLASSES, 0)
    )
    faults_dropped: int = 0
    """Read and not kept: there were too many, and others tell more."""

    def copy(self) -> "JobTotals":
        return JobTotals(
            dict(self.faults), dict(self.stalls), dict(self.stall_ns), self.faults_dropped
        )


class JobsView(msgspec.Struct, frozen=True):
    """Jobs as they stand after the last commit."""

    running: tuple[Job, ...] = ()
    stalls: tuple[Stall, ...] = ()
    """Those that go on."""
    blind_to: tuple[str, ...] = ()
    """What of the node's processes cannot be seen, in words."""
    totals: JobTotals = msgspec.field(default_factory=JobTotals)
