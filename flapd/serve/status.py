"""StatusApi: is the agent well, what does it watch and what can it not see; on the socket only."""

import time
from collections.abc import Iterable
from concurrent.futures import Executor

import msgspec
from aiohttp import web

from flapd import __version__
from flapd.core.fabric.view import PortView, Snapshot
from flapd.model.fleet import Publishing
from flapd.model.job import Job
from flapd.model.times import SECOND_NS
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.bonds import with_members
from flapd.serve.control import MaintenanceItem, maintenance_items
from flapd.serve.items import RecordingItem
from flapd.serve.names import sources_up
from flapd.serve.recording import recording_item
from flapd.serve.route import Question, Route
from flapd.serve.told_jobs import PortNames, job_item, port_names, time_of
from flapd.sources.job_reader_link import JobReaderHealth
from flapd.store.database import HistoryError
from flapd.store.job_queries import IncidentQuery

_MOST_INCIDENTS = 20


class SamplerItem(msgspec.Struct, frozen=True):
    restarts: int
    stuck: dict[str, float]
    """Device -> seconds its reader has waited in one read."""
    slowed: dict[str, int]
    """Device -> how many times slower than configured it is read, where its reads take long."""
    rings_missing: dict[str, int]
    """Device -> rings of its ports that could not be made: what they were for is not remembered."""


class JobReaderItem(msgspec.Struct, frozen=True):
    """Logs and dumps of jobs; all but the restarts since its last start."""

    restarts: int
    files: int
    """Logs that are followed."""
    bytes: int
    behind_bytes: int
    """That are in logs and not read yet."""
    dumps: int
    unknown_warnings: int
    """Of NCCL, in forms that are not known."""
    faults_held_back: int
    """That said the same as many before them."""
    failures: dict[str, str]
    """What cannot be read now, and why: files, patterns, the journal, processes."""


class HistoryItem(msgspec.Struct, frozen=True):
    path: str
    bytes: int
    durable: bool
    """Everything that is shown is on disk."""
    write_errors: int
    events_not_durable: int
    events_dropped: int
    """Events that it will never have: it could not be written for too long."""


class FleetItem(msgspec.Struct, frozen=True):
    connected: bool
    server: str | None
    """Where it is connected, or was last."""
    reason: str | None
    """Why it is not connected, or why the stream does not take what it is told."""
    outbox_events: int
    """Entries of the journal that the stream does not have yet."""
    events_published: int
    events_lost: int
    """Never told: the history let go of them first, or no server takes a message so large."""


class PortsSummary(msgspec.Struct, frozen=True):
    """How many ports; the lists are names."""

    found: int | None
    """None until discovery has told."""
    expected: int
    watched: int
    up: int
    down: list[str]
    unknown: list[str]
    """Watched, and not known to be up or down."""
    unreadable: list[str]
    flapping: list[str]
    downgraded: list[str]
    gone: list[str]


class RunningJob(msgspec.Struct, frozen=True):
    job: str
    kind: str
    world_size: int | None
    local_ranks: int
    ports: list[str]
    since: str | None
    stands_still: bool
    """Its traffic does."""
    blind_to: list[str]


class OpenIncident(msgspec.Struct, frozen=True):
    id: str
    job: str | None
    verdict: str
    begin: str | None


class JobsStatus(msgspec.Struct, frozen=True):
    running: list[RunningJob]
    blind_to: list[str]
    """What of the node's processes cannot be seen."""
    incidents: list[OpenIncident] | None
    """Those that go on, the newest first; None: the history cannot be read."""


class Status(msgspec.Struct, frozen=True):
    version: str
    node: str
    uptime_seconds: float
    boot: str
    config: str
    config_ok: bool
    """False: the configuration read last was refused, an older one is in force."""
    restart_needed: list[str]
    """Sections of the configuration read last that are not in force until the next start."""
    ready: bool
    reasons: list[str]
    """Why it is not ready."""
    sources: dict[str, bool]
    """Source -> it tells of at least one port."""
    sampler: SamplerItem
    job_reader: JobReaderItem
    history: HistoryItem
    recording: RecordingItem | None
    ports: PortsSummary
    jobs: JobsStatus
    maintenance: list[MaintenanceItem]
    observations_refused: int
    fleet: FleetItem | None
    """None: it tells no fleet."""


class StatusApi:
    def __init__(self, agent: Agent, executor: Executor) -> None:
        self._agent = agent
        self._executor = executor

    def routes(self) -> Iterable[Route]:
        yield Route(
            "GET", "/api/v1/status", "Is the agent well, and what does it see", self._tell, Status
        )

    async def _tell(self, _question: Question) -> web.Response:
        return json_answer(await in_thread(self._executor, lambda: encoded(status_of(self._agent))))


def status_of(agent: Agent) -> Status:
    about, health, snapshot = agent.about, agent.health, agent.snapshot()
    now_ns = time.monotonic_ns()
    reasons = agent.not_ready()
    recording = agent.recording()
    return Status(
        version=__version__,
        node=about.node,
        uptime_seconds=(now_ns - about.started_ns) / SECOND_NS,
        boot=about.boot,
        config=about.config,
        config_ok=health.config_reloaded_ok,
        restart_needed=list(health.restart_needed),
        ready=not reasons,
        reasons=reasons,
        sources=sources_up(snapshot.ports, health.sources),
        sampler=_sampler(agent, snapshot, now_ns),
        job_reader=_job_reader(agent.health.job_reader),
        history=_history(agent),
        recording=None if recording is None else recording_item(recording),
        ports=_ports(snapshot),
        jobs=_jobs(agent, snapshot),
        maintenance=maintenance_items(agent, snapshot.maintenance),
        observations_refused=health.observations_refused,
        fleet=None if health.fleet is None else _fleet(health.fleet),
    )


def _fleet(fleet: Publishing) -> FleetItem:
    return FleetItem(
        connected=fleet.connected,
        server=fleet.server,
        reason=fleet.reason or None,
        outbox_events=fleet.outbox_events,
        events_published=fleet.events_published,
        events_lost=fleet.events_lost,
    )


def _sampler(agent: Agent, snapshot: Snapshot, now_ns: int) -> SamplerItem:
    stuck = {
        device: (now_ns - since_ns) / SECOND_NS
        for device, since_ns in snapshot.stuck_readers.items()
    }
    reads = agent.health.reads
    return SamplerItem(
        restarts=agent.health.sampler_restarts,
        stuck=stuck,
        slowed=dict(reads.slowed),
        rings_missing=dict(reads.rings_missing),
    )


def _job_reader(health: JobReaderHealth) -> JobReaderItem:
    reads = health.reads
    return JobReaderItem(
        restarts=health.restarts,
        files=reads.files,
        bytes=reads.bytes,
        behind_bytes=reads.behind_bytes,
        dumps=reads.dumps,
        unknown_warnings=reads.unknown_warnings,
        faults_held_back=reads.faults_held_back,
        failures=dict(reads.failures),
    )


def _history(agent: Agent) -> HistoryItem:
    health = agent.health
    return HistoryItem(
        path=str(agent.about.history),
        bytes=agent.history.history_bytes(),
        durable=not health.events_not_durable,
        write_errors=health.history_write_errors,
        events_not_durable=health.events_not_durable,
        events_dropped=health.events_dropped,
    )


def _ports(snapshot: Snapshot) -> PortsSummary:
    views = with_members(snapshot.ports)
    watched = [view for view in views if view.watched]
    return PortsSummary(
        found=sum(view.present for view in views) if snapshot.is_scouted else None,
        expected=snapshot.ports_expected,
        watched=len(watched),
        up=sum(view.up is True for view in watched),
        down=_names(view for view in watched if view.up is False),
        unknown=_names(view for view in watched if view.up is None),
        unreadable=_names(view for view in views if view.present and not view.readable),
        flapping=_names(view for view in views if view.flapping),
        downgraded=_names(view for view in views if view.downgraded),
        gone=_names(view for view in views if not view.present),
    )


def _jobs(agent: Agent, snapshot: Snapshot) -> JobsStatus:
    names = port_names(snapshot)
    still = {stall.job for stall in snapshot.jobs.stalls}
    running = [_running(job, names, job.job in still) for job in snapshot.jobs.running]
    return JobsStatus(running, list(snapshot.jobs.blind_to), _open_incidents(agent))


def _running(job: Job, names: PortNames, stands_still: bool) -> RunningJob:
    item = job_item(job, names)
    return RunningJob(
        job=item.job,
        kind=item.kind,
        world_size=item.world_size,
        local_ranks=len(item.local_ranks),
        ports=item.ports,
        since=item.since,
        stands_still=stands_still,
        blind_to=item.blind_to,
    )


def _open_incidents(agent: Agent) -> list[OpenIncident] | None:
    try:
        found = agent.history.incidents(IncidentQuery(status="open", limit=_MOST_INCIDENTS))
    except HistoryError:
        return None
    return [
        OpenIncident(one.id, one.job, one.verdict, time_of(one.begin_unix_ns))
        for one in found.items
    ]


def _names(views: Iterable[PortView]) -> list[str]:
    return [view.port.name for view in views]
