"""A node as the engine sees it: ports that are read, jobs that are found, logs that tell."""

from collections.abc import Sequence
from typing import Any, TypeVar

from flapd.core.cost.settings import JobSettings
from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.core.job.view import JobsView
from flapd.model.event import Event
from flapd.model.fault import Fault
from flapd.model.finding import Note
from flapd.model.job import JobFound, Rank, ReadFile
from flapd.model.observation import (
    READ_FIRST,
    READ_SLOW,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    FaultRead,
    JobSeen,
    JobsPresent,
    Noted,
    Observation,
    PortSeen,
    Sample,
    Tick,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from tests.core.job.stall.traffic import RATE, moved

OFFSET_NS = 1_700_000_000 * SECOND_NS
WITNESS = "counters/link_downed"
SENT = "counters/port_xmit_data"
EXHAUSTED = "hw_counters/req_transport_retries_exceeded"
PORTS = tuple(
    Port(f"guid-{number}/1", f"mlx5_{number}", 1, "InfiniBand", driver="mlx5", witnesses=(WITNESS,))
    for number in range(2)
)
KEYS = tuple(port.key for port in PORTS)

_E = TypeVar("_E")


def ns(seconds: float) -> int:
    return round(seconds * SECOND_NS)


def unix(seconds: float) -> int:
    """Unix time of a moment of the test."""
    return ns(seconds) + OFFSET_NS


def found(job: str = "4711", **known: Any) -> JobFound:
    defaults: dict[str, Any] = {
        "scheduler": "slurm",
        "ranks": (
            Rank(rank=8, pid=100, inner_pid=7, local_rank=0, started_unix_ns=unix(-3600)),
            Rank(rank=9, pid=101, inner_pid=8, local_rank=1, started_unix_ns=unix(-3600)),
        ),
        "world_size": 64,
        "gpus": None,
        "ports": dict.fromkeys(KEYS, "queue_pair"),
        "queue_pairs_in_error": {},
        "environment": {"NCCL_IB_TIMEOUT": "22", "SLURM_JOB_ID": job},
        "conf_files": (ReadFile("/etc/nccl.conf", ""),),
    }
    return JobFound(job=job, **defaults | known)


def fault(kind: Any, at: float, **known: Any) -> Fault:
    told: dict[str, Any] = {"form": str(kind), "text": "", "clock_error_ns": 0}
    named = known.pop("id", f"fault-{kind}-{at}-{sorted(known.items())}")
    return Fault(id=named, kind=kind, time_ns=unix(at), **told | known)


def prelude() -> list[Observation]:
    return [ClockPair(0, OFFSET_NS, "boot1"), *(PortSeen(port, 0) for port in PORTS)]


class Node:
    """Keeps what the engine told."""

    def __init__(self, **settings: Any) -> None:
        self.told: list[Event] = []
        self.engine = Engine("node7", FlapSettings(), job=JobSettings(**settings))
        self.take(*prelude())

    def take(self, *observations: Observation) -> list[Event]:
        events = [event for one in observations for event in self.engine.step(one)]
        self.told += events
        return events

    def job(self, at: float, **known: Any) -> list[Event]:
        return self.take(JobSeen(found(**known), ns(at)))

    def present(self, at: float, *jobs: str) -> list[Event]:
        return self.take(JobsPresent(jobs, (), ns(at)))

    def read(self, at: float, *faults: Fault) -> list[Event]:
        """Reads them and lets a tick pass."""
        return self.take(*(FaultRead(one, ns(at)) for one in faults), Tick(ns(at)))

    def note(self, at: float, note: Note, job: str | None = None) -> list[Event]:
        return self.take(Noted(job, note, ns(at)), Tick(ns(at)))

    def tick(self, at: float) -> list[Event]:
        return self.take(Tick(ns(at)))

    def restart(self) -> None:
        self.engine = Engine.of_recording("node7", self.engine.checkpoint())

    @property
    def view(self) -> JobsView:
        return self.engine.snapshot().jobs

    def last(self, kind: type[_E]) -> list[_E]:
        """The last revision of each, in the order in which they were first told."""
        return list({event.id: event for event in self.told if isinstance(event, kind)}.values())


def of(kind: type[_E], events: Sequence[Event]) -> list[_E]:
    return [event for event in events if isinstance(event, kind)]


def samples(
    bursts: Sequence[tuple[float, float]],
    until: float,
    *,
    begin: float = 0.0,
    downs: Sequence[tuple[str, float]] = (),
    ports: Sequence[Port] = PORTS,
    speed: float = 0.8,
) -> list[Observation]:
    """Ports read every tenth of a second, with a tick every second; `downs` are by key.

    A port that goes down is back with the next sample: its witness tells of it.
    """
    told: list[Observation] = []
    last: dict[str, dict[str, int]] = {port.key: {} for port in ports}
    place = 0
    for step in range(round(begin * 10), round(until * 10)):
        for number, port in enumerate(ports):
            now = step / 10 + number / 100
            while place < len(bursts) and bursts[place][1] < begin:
                place += 1
            sent = moved(bursts[place:], begin, now) * speed * RATE / 4
            values = {SENT: round(sent)}
            if port.witness == WITNESS:
                values[WITNESS] = sum(key == port.key and at < now for key, at in downs)
            first = step == round(begin * 10)
            if first:
                values |= {"state": 4, "phys_state": 5, "rate_mbps": 400_000, EXHAUSTED: 0}
            known = last[port.key]
            new = {name: value for name, value in values.items() if known.get(name) != value}
            known |= values
            reads = READ_WITNESS if port.witness == WITNESS else 0
            reads |= READ_STATE | READ_SLOW if step % 5 == 0 else 0
            reads |= READ_FIRST if first else 0
            told.append(Sample(port.key, ns(now), ns(now) + 50_000, reads, new))
        if step % 10 == 0:
            told.append(Tick(ns(step / 10) + 99_000_000))
    return told
