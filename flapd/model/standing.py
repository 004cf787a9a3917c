"""Standing: where the ranks of a process group stand that does not go on."""

import msgspec


class Standing(msgspec.Struct, frozen=True):
    """The first collective of a process group that not all its ranks have completed."""

    group: str
    description: str
    ranks: tuple[int, ...]
    """Of the group, in the job; empty: no dump says so."""
    seq: int
    op: str
    created_ns: int
    """When the first rank enqueued it: from then on it waited. Unix time."""
    timeout_seconds: float | None
    states: dict[int, str]
    """By rank: "scheduled", "started" or "completed"."""
    missing: tuple[int, ...]
    """Ranks that never enqueued it, by their own dumps."""
    last_completed: dict[int, int]
    silent: tuple[int, ...]
    """Ranks of the group without a dump: nothing is known of them."""

    @property
    def lagging(self) -> tuple[int, ...]:
        """Those that did not join; else those that have completed least, unless that is all."""
        if self.missing:
            return self.missing
        least = min(self.last_completed.values(), default=0)
        behind = tuple(sorted(rank for rank, last in self.last_completed.items() if last == least))
        return behind if len(behind) < len(self.last_completed) else ()
