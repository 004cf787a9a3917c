"""The engine: takes observations in order, tells events.

The same observations after the same checkpoint give the same events, on a node and
in a replay.
"""

from collections.abc import Mapping

import msgspec

from flapd.core.fabric.fabric import Fabric, FabricRecord
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import Snapshot
from flapd.core.fabric.watch import PortRecord
from flapd.model.errors import FlapdError
from flapd.model.event import Event
from flapd.model.observation import Observation
from flapd.model.times import SECOND_NS

CHECKPOINT_VERSION = b"2"
"""Raised whenever what a part holds changes its meaning."""

_VERSION, _SETTINGS, _FABRIC = "version", "settings", "fabric"


class CheckpointError(FlapdError):
    """The checkpoint is of another version of flapd, or damaged."""


class Engine:
    """All state of one node, changed by `step` alone."""

    def __init__(
        self,
        node: str,
        settings: FlapSettings,
        checkpoint: Mapping[str, bytes] | None = None,
        stale_after_ns: int = 3 * SECOND_NS,
    ) -> None:
        """Goes on from a checkpoint if there is one; CheckpointError where that cannot be.

        Which of its ports are still there is for discovery to say.
        """
        self._settings = settings
        record = _record_in(checkpoint) if checkpoint else FabricRecord()
        self._fabric = Fabric(node, settings, stale_after_ns, record)
        self._takes = self._fabric.takes

    @classmethod
    def of_recording(cls, node: str, checkpoint: Mapping[str, bytes]) -> "Engine":
        """As it was when it was recorded, with the settings in force then."""
        try:
            settings = msgspec.msgpack.decode(checkpoint.get(_SETTINGS, b""), type=FlapSettings)
        except msgspec.MsgspecError as error:
            raise CheckpointError(f"the settings it was recorded with: {error}") from error
        return cls(node, settings, checkpoint)

    def step(self, observation: Observation) -> list[Event]:
        """Takes the next observation; the events it makes known, in order."""
        return self._takes[type(observation)](observation)

    def expect_readings_within(self, stale_after_ns: int) -> None:
        """What was read longer ago than that is not shown as known; it changes no event."""
        self._fabric.stale_after_ns = stale_after_ns

    def checkpoint(self) -> dict[str, bytes]:
        """Everything a new engine needs to go on from here."""
        encode = msgspec.msgpack.encode
        return {
            _VERSION: CHECKPOINT_VERSION,
            _SETTINGS: encode(self._settings),
            _FABRIC: encode(self._fabric.record),
        }

    def snapshot(self) -> Snapshot:
        """What may be shown once everything told so far is committed."""
        return self._fabric.snapshot()

    def port(self, key: str) -> PortRecord | None:
        """What is kept of a port."""
        return self._fabric.port(key)


def _record_in(checkpoint: Mapping[str, bytes]) -> FabricRecord:
    if checkpoint.get(_VERSION) != CHECKPOINT_VERSION:
        raise CheckpointError("it is of another version of flapd")
    try:
        return msgspec.msgpack.decode(checkpoint.get(_FABRIC, b""), type=FabricRecord)
    except msgspec.MsgspecError as error:
        raise CheckpointError(f"it is damaged: {error}") from error
