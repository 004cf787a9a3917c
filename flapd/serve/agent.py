"""Agent: what serving needs from whoever watches the ports."""

from typing import Protocol

import msgspec

from flapd.core.fabric.view import Snapshot
from flapd.store.history_reader import HistoryReader


class Health(msgspec.Struct):
    """What happened to the agent itself; counts only rise while it runs."""

    sampler_restarts: int = 0
    history_write_errors: int = 0
    events_not_durable: int = 0
    """Events that are shown and not yet on disk; falls again."""
    observations_refused: int = 0
    config_reloaded_ok: bool = True


class RecordingStatus(msgspec.Struct, frozen=True):
    """The recording that runs, or the last one that ran."""

    path: str
    bytes: int
    active: bool
    until_unix_ns: int


class Agent(Protocol):
    """Called from several threads; no call waits for hardware."""

    @property
    def node(self) -> str: ...

    @property
    def history(self) -> HistoryReader: ...

    @property
    def health(self) -> Health: ...

    def snapshot(self) -> Snapshot: ...

    def not_ready(self) -> list[str]:
        """Why not every watched port is known yet, a sentence each; empty = ready."""
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
