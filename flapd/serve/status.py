"""StatusApi: is the agent well, what does it watch and what can it not see; on the socket only."""

import time
from collections.abc import Iterable
from concurrent.futures import Executor

import msgspec
from aiohttp import web

from flapd import __version__
from flapd.core.fabric.view import PortView, Snapshot
from flapd.model.times import SECOND_NS
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.bonds import with_members
from flapd.serve.control import MaintenanceItem, maintenance_items
from flapd.serve.items import RecordingItem
from flapd.serve.names import sources_up
from flapd.serve.recording import recording_item
from flapd.serve.route import Question, Route


class SamplerItem(msgspec.Struct, frozen=True):
    restarts: int
    stuck: dict[str, float]
    """Device -> seconds its reader has waited in one read."""
    slowed: dict[str, int]
    """Device -> how many times slower than configured it is read, where its reads take long."""
    rings_missing: dict[str, int]
    """Device -> rings of its ports that could not be made: what they were for is not remembered."""


class HistoryItem(msgspec.Struct, frozen=True):
    path: str
    bytes: int
    durable: bool
    """Everything that is shown is on disk."""
    write_errors: int
    events_not_durable: int
    events_dropped: int
    """Events that it will never have: it could not be written for too long."""


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
    """Source -> it can read at least one port."""
    sampler: SamplerItem
    history: HistoryItem
    recording: RecordingItem | None
    ports: PortsSummary
    maintenance: list[MaintenanceItem]
    observations_refused: int


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
        sources=sources_up(snapshot.ports),
        sampler=_sampler(agent, snapshot, now_ns),
        history=_history(agent),
        recording=None if recording is None else recording_item(recording),
        ports=_ports(snapshot),
        maintenance=maintenance_items(agent, snapshot.maintenance),
        observations_refused=health.observations_refused,
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


def _names(views: Iterable[PortView]) -> list[str]:
    return [view.port.name for view in views]
