"""The engine: takes observations in order, tells events.

The same observations after the same checkpoint give the same events, on a node and
in a replay.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.fabric.fabric import Fabric, FabricRecord
from flapd.core.fabric.lasting import Lasting, LastingPort
from flapd.core.fabric.record import PortRecord
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import Snapshot
from flapd.core.incident.desk import IncidentDesk, IncidentsRecord
from flapd.core.job.desk import JobDesk, JobsRecord
from flapd.core.orphans import GoesOn, lost
from flapd.core.part import Part
from flapd.model.errors import FlapdError
from flapd.model.event import Event, Outage
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.observation import Observation
from flapd.model.times import SECOND_NS

CHECKPOINT_VERSION = b"2"
"""Raised whenever what a part holds changes its meaning."""

_VERSION, _LASTING = "version", "lasting"
_FABRIC, _JOBS, _INCIDENTS = "fabric", "jobs", "incidents"
_FLAP_SETTINGS, _JOB_SETTINGS, _COST_SETTINGS = "settings", "job_settings", "cost_settings"

_JOB, _COST = JobSettings(), CostSettings()
_T = TypeVar("_T")


class CheckpointError(FlapdError):
    """The checkpoint is of another version of flapd, or damaged."""


class _State(msgspec.Struct):
    """What each part goes on from; what an older checkpoint lacks begins anew."""

    fabric: FabricRecord
    jobs: JobsRecord = msgspec.field(default_factory=JobsRecord)
    incidents: IncidentsRecord = msgspec.field(default_factory=IncidentsRecord)


class Engine:
    """All state of one node, changed by `step` alone."""

    def __init__(
        self,
        node: str,
        settings: FlapSettings,
        checkpoint: Mapping[str, bytes] | None = None,
        stale_after_ns: int = 3 * SECOND_NS,
        *,
        job: JobSettings = _JOB,
        cost: CostSettings = _COST,
    ) -> None:
        """Goes on from a checkpoint if there is one; CheckpointError where that cannot be.

        Which of its ports are still there is for discovery to say.
        """
        self._node = node
        self._settings: dict[str, msgspec.Struct] = {
            _FLAP_SETTINGS: settings,
            _JOB_SETTINGS: job,
            _COST_SETTINGS: cost,
        }
        self._stale_after_ns = stale_after_ns
        state = _state_in(checkpoint) if checkpoint else _State(FabricRecord())
        self._use(state, settings, job, cost)

    def _use(self, state: _State, flap: FlapSettings, job: JobSettings, cost: CostSettings) -> None:
        self._fabric = Fabric(self._node, flap, self._stale_after_ns, state.fabric)
        self._jobs = JobDesk(self._node, job, state.jobs)
        self._incidents = IncidentDesk(self._node, job, cost, state.incidents)
        self._later: tuple[Part, ...] = (self._jobs, self._incidents)
        kinds = set(self._fabric.takes).union(*(part.takes for part in self._later))
        self._takes = {kind: self._fabric.takes.get(kind, _nothing) for kind in kinds}

    @classmethod
    def with_totals_of(
        cls,
        node: str,
        settings: FlapSettings,
        checkpoint: Mapping[str, bytes],
        stale_after_ns: int,
        *,
        job: JobSettings = _JOB,
        cost: CostSettings = _COST,
    ) -> "Engine":
        """Of a checkpoint that cannot be used, what every version of it understands."""
        engine = cls(node, settings, None, stale_after_ns, job=job, cost=cost)
        try:
            lasting = msgspec.msgpack.decode(checkpoint.get(_LASTING, b""), type=Lasting)
        except msgspec.MsgspecError:
            return engine
        fabric = FabricRecord(
            lasting.boot,
            lasting.wall_offset_ns,
            lasting.down_histogram,
            [port.record() for port in lasting.ports],
        )
        jobs = JobsRecord(totals=lasting.job_totals)
        incidents = IncidentsRecord(totals=lasting.incident_totals)
        engine._use(_State(fabric, jobs, incidents), settings, job, cost)
        return engine

    @classmethod
    def of_recording(cls, node: str, checkpoint: Mapping[str, bytes]) -> "Engine":
        """As it was when it was recorded, with the settings in force then."""
        try:
            return cls(
                node,
                msgspec.msgpack.decode(checkpoint.get(_FLAP_SETTINGS, b""), type=FlapSettings),
                checkpoint,
                job=_part(checkpoint, _JOB_SETTINGS, JobSettings),
                cost=_part(checkpoint, _COST_SETTINGS, CostSettings),
            )
        except msgspec.MsgspecError as error:
            raise CheckpointError(f"the settings it was recorded with: {error}") from error

    def step(self, observation: Observation) -> list[Event]:
        """Takes the next observation; the events it makes known, in order."""
        kind = type(observation)
        events = self._takes[kind](observation)
        for part in self._later:
            heard = part.hears(events) if events else []
            take = part.takes.get(kind)
            told = heard if take is None else [*heard, *take(observation)]
            if told:
                events = [*events, *told]
        return events

    def expect_readings_within(self, stale_after_ns: int) -> None:
        """What was read longer ago than that is not shown as known; it changes no event."""
        self._fabric.stale_after_ns = stale_after_ns

    def checkpoint(self) -> dict[str, bytes]:
        """Everything a new engine needs to go on from here."""
        encode = msgspec.msgpack.encode
        record = self._fabric.record
        settings = {name: encode(settings) for name, settings in self._settings.items()}
        return settings | {
            _VERSION: CHECKPOINT_VERSION,
            _FABRIC: encode(record),
            _JOBS: encode(self._jobs.record),
            _INCIDENTS: encode(self._incidents.record),
            _LASTING: encode(_lasting(record, self._jobs.record, self._incidents.record)),
        }

    def orphans(self, going_on: Iterable[GoesOn]) -> list[Event]:
        """The last revisions of those of the history that this engine knows nothing of.

        A job among them may run still: found again, it is told with the revision after that.
        """
        found = [lost(one, self._known_until_unix_ns()) for one in going_on if not self._holds(one)]
        self._jobs.count_on_from(one for one in found if isinstance(one, Job))
        return [*found]

    def _holds(self, item: GoesOn) -> bool:
        if isinstance(item, Outage):
            return self._fabric.holds(item)
        part = self._incidents if isinstance(item, Incident) else self._jobs
        return item.id in part.known_ids()

    def _known_until_unix_ns(self) -> int:
        """When any port was read last."""
        record = self._fabric.record
        read_ns = max((port.book.read_until_ns for port in record.ports), default=0)
        return 0 if record.wall_offset_ns is None else read_ns + record.wall_offset_ns

    def snapshot(self) -> Snapshot:
        """What may be shown once everything told so far is committed."""
        return replace(
            self._fabric.snapshot(), jobs=self._jobs.view(), incidents=self._incidents.view()
        )

    def port(self, key: str) -> PortRecord | None:
        """What is kept of a port."""
        return self._fabric.port(key)


def _nothing(_observation: Any) -> list[Event]:
    return []


def _lasting(fabric: FabricRecord, jobs: JobsRecord, incidents: IncidentsRecord) -> Lasting:
    return Lasting(
        fabric.boot,
        fabric.wall_offset_ns,
        fabric.down_histogram,
        [LastingPort.of(port) for port in fabric.ports],
        jobs.totals,
        incidents.totals,
    )


def _state_in(checkpoint: Mapping[str, bytes]) -> _State:
    if checkpoint.get(_VERSION) != CHECKPOINT_VERSION:
        raise CheckpointError("it is of another version of flapd")
    try:
        fabric = msgspec.msgpack.decode(checkpoint.get(_FABRIC, b""), type=FabricRecord)
        jobs = _part(checkpoint, _JOBS, JobsRecord)
        incidents = _part(checkpoint, _INCIDENTS, IncidentsRecord)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise CheckpointError(f"it is damaged: {error}") from error
    for port in fabric.ports:
        if not port.book.is_whole:
            raise CheckpointError(f"it is damaged: {port.port.name} lacks an outage it goes on")
    return _State(fabric, jobs, incidents)


def _part(checkpoint: Mapping[str, bytes], name: str, kind: type[_T]) -> _T:
    """As it is by default where an older checkpoint does not have it."""
    encoded = checkpoint.get(name)
    return kind() if encoded is None else msgspec.msgpack.decode(encoded, type=kind)
