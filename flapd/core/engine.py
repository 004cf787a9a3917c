"""The engine: takes observations in order, tells events.

The same observations after the same checkpoint give the same events, on a node and
in a replay.
"""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec.structs import replace

from flapd.core.fabric.fabric import Fabric, FabricRecord
from flapd.core.fabric.lasting import Lasting, LastingPort
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import Snapshot
from flapd.core.fabric.watch import PortRecord
from flapd.model.errors import FlapdError
from flapd.model.event import Event, Outage
from flapd.model.observation import Observation
from flapd.model.times import SECOND_NS

CHECKPOINT_VERSION = b"2"
"""Raised whenever what a part holds changes its meaning."""

_VERSION, _SETTINGS, _FABRIC, _LASTING = "version", "settings", "fabric", "lasting"


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
        record = _record_in(checkpoint) if checkpoint else FabricRecord()
        self._use(node, settings, stale_after_ns, record)

    def _use(
        self, node: str, settings: FlapSettings, stale_after_ns: int, record: FabricRecord
    ) -> None:
        self._settings = settings
        self._fabric = Fabric(node, settings, stale_after_ns, record)
        self._takes = self._fabric.takes

    @classmethod
    def with_totals_of(
        cls, node: str, settings: FlapSettings, checkpoint: Mapping[str, bytes], stale_after_ns: int
    ) -> "Engine":
        """Of a checkpoint that cannot be used, what every version of it understands."""
        engine = cls(node, settings, None, stale_after_ns)
        try:
            lasting = msgspec.msgpack.decode(checkpoint.get(_LASTING, b""), type=Lasting)
        except msgspec.MsgspecError:
            return engine
        record = FabricRecord(
            lasting.boot,
            lasting.wall_offset_ns,
            lasting.down_histogram,
            [port.record() for port in lasting.ports],
        )
        engine._use(node, settings, stale_after_ns, record)
        return engine

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
        record = self._fabric.record
        return {
            _VERSION: CHECKPOINT_VERSION,
            _SETTINGS: encode(self._settings),
            _FABRIC: encode(record),
            _LASTING: encode(_lasting(record)),
        }

    def orphans(self, open_outages: Iterable[Outage]) -> list[Outage]:
        """Those of the history that this engine knows nothing of: how they ended is lost."""
        return [
            replace(outage, revision=outage.revision + 1, status="lost", settled=True)
            for outage in open_outages
            if not self._fabric.holds(outage)
        ]

    def snapshot(self) -> Snapshot:
        """What may be shown once everything told so far is committed."""
        return self._fabric.snapshot()

    def port(self, key: str) -> PortRecord | None:
        """What is kept of a port."""
        return self._fabric.port(key)


def _lasting(record: FabricRecord) -> Lasting:
    ports = [LastingPort.of(port) for port in record.ports]
    return Lasting(record.boot, record.wall_offset_ns, record.down_histogram, ports)


def _record_in(checkpoint: Mapping[str, bytes]) -> FabricRecord:
    if checkpoint.get(_VERSION) != CHECKPOINT_VERSION:
        raise CheckpointError("it is of another version of flapd")
    try:
        record = msgspec.msgpack.decode(checkpoint.get(_FABRIC, b""), type=FabricRecord)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CheckpointError(f"it is damaged: {error}") from error
    for port in record.ports:
        if not port.book.is_whole:
            raise CheckpointError(f"it is damaged: {port.port.name} lacks an outage it goes on")
    return record
