"""Agent: what serving needs from whoever watches the ports."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from flapd.core.fabric.view import MaintenanceView, Snapshot
from flapd.model.fleet import Publishing
from flapd.sources.job_reader_link import JobReaderHealth
from flapd.sources.read_health import ReadHealth
from flapd.store.history_reader import HistoryReader


class Health(msgspec.Struct):
    """What happened to the agent itself; counts only rise while it runs."""

    sampler_restarts: int = 0
    history_write_errors: int = 0
    events_not_durable: int = 0
    """Events that are shown and not yet on disk; falls again."""
    events_dropped: int = 0
    """Events that the history will never have: the disk took none for too long."""
    observations_refused: int = 0
    config_reloaded_ok: bool = True
    restart_needed: tuple[str, ...] = ()
    """Sections of the configuration read last that are not in force until the next start."""
    reads: ReadHealth = msgspec.field(default_factory=ReadHealth)
    job_reader: JobReaderHealth = msgspec.field(default_factory=JobReaderHealth)
    sources: Mapping[str, Mapping[str, str]] = {}
    """By port key: each of the kernel's sources besides sysfs, "on" or why it tells nothing."""
    fleet: Publishing | None = None
    """None: it is told to no fleet."""


class OwnHealth(Protocol):
    """What an agent and a hub both tell of themselves."""

    @property
    def history_write_errors(self) -> int: ...

    @property
    def events_not_durable(self) -> int: ...

    @property
    def config_reloaded_ok(self) -> bool: ...

    @property
    def restart_needed(self) -> tuple[str, ...]: ...


class About(msgspec.Struct, frozen=True):
    """What stays the same while the agent runs."""

    node: str
    boot: str
    started_ns: int
    """Monotonic."""
    config: str
    history: Path
    ring: Path


class RecordingStatus(msgspec.Struct, frozen=True):
    """The recording that runs, or the last one that ran."""

    path: str
    bytes: int
    active: bool
    until_unix_ns: int


class Teller(Protocol):
    """Who tells of what happened: an agent of its node, a hub of all nodes.

    Called from several threads.
    """

    @property
    def about(self) -> About: ...

    @property
    def history(self) -> HistoryReader: ...

    def snapshot(self) -> Snapshot: ...

    def not_ready(self) -> list[str]:
        """Why not all is known yet that should be, a sentence each; empty = ready."""
        ...

    def subscribe(self, committed: Callable[[], None]) -> None:
        """Calls `committed`, in any thread, each time events are in the history and shown."""
        ...


class Agent(Teller, Protocol):
    """No call waits for hardware.

    What changes something raises ApiError `unavailable` where the engine does not answer.
    """

    @property
    def health(self) -> Health: ...

    def maintain(self, key: str | None, until_ns: int, reason: str) -> tuple[MaintenanceView, ...]:
        """Planned work on a port (None = all) until a monotonic time; all that goes on then."""
        ...

    def end_maintenance(self) -> tuple[MaintenanceView, ...]:
        """Ends all planned work; what goes on then."""
        ...

    def repaired(self, key: str, note: str) -> None:
        """Somebody replaced cable or module of this port."""
        ...

    def start_recording(self, seconds: float, max_bytes: int) -> RecordingStatus:
        """Record observations from now on; raises FlapdError where that cannot be."""
        ...

    def recording(self) -> RecordingStatus | None:
        """The recording that runs or ran last; None = there was none."""
        ...

    def stop_recording(self) -> RecordingStatus | None:
        """End the recording that runs; its file stays readable until the next one begins."""
        ...
