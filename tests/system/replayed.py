"""What the engine tells of a simulated job, from the observations of one of its nodes."""

import heapq
import pickle
import random
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.core.job.clock import Clock
from flapd.core.job.dump import Dump, dump_of, standings, timeouts_seconds
from flapd.core.job.stream import LogStream
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.observation import DumpsRead, FaultRead, Noted, Observation, Sample
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS
from simulators.job import found
from simulators.job.log import node_log
from simulators.job.node import node_scenario
from simulators.job.observed import Watch, fabric_observed, moment_ns, ports_of
from simulators.job.record import Run
from simulators.job.words import speaker

ORIGIN_NS = 5_000 * SECOND_NS
UNIX_OF_ORIGIN_NS = 1_796_027_531 * SECOND_NS
_POLL_SECONDS = 0.25
"""How often a log is looked at."""

Item = TypeVar("Item", Outage, Fault, Stall, Incident)


class Told(NamedTuple):
    """The last of each thing that was told."""

    outages: list[Outage]
    faults: list[Fault]
    stalls: list[Stall]
    incidents: list[Incident]
    """Without those that others took the place of."""
    observations: int


class Seen(NamedTuple):
    """From where, and how, a run is looked at."""

    node: int
    begin: float
    end: float
    has_log: bool
    ports_are_known: bool
    """By their queue pairs; else only by their traffic."""
    seed: int
    closely: tuple[tuple[float, float], ...] | None = None
    """When each sweep is shown; None: always."""


def replay(run: Run, seen: Seen) -> Told:
    engine = Engine("node000", FlapSettings())
    latest: dict[type, dict[str, Any]] = {}
    count = 0
    for observation in observations(run, seen):
        count += isinstance(observation, Sample)
        for event in engine.step(observation):
            latest.setdefault(type(event), {})[event.id] = event
    incidents = latest.get(Incident, {})
    gone = {name for one in incidents.values() for name in one.supersedes}
    return Told(
        list(latest.get(Outage, {}).values()),
        [one for one in latest.get(Fault, {}).values() if one.merged_into is None],
        list(latest.get(Stall, {}).values()),
        [one for name, one in incidents.items() if name not in gone],
        count,
    )


def observations(run: Run, seen: Seen) -> Iterator[Observation]:
    """All that the agent's children would tell, in order of time."""
    clock = speaker.Clock(UNIX_OF_ORIGIN_NS)
    scenario = node_scenario(run, seen.node)
    watch = Watch(
        seen.begin,
        seen.end,
        ORIGIN_NS,
        UNIX_OF_ORIGIN_NS - ORIGIN_NS,
        "boot1",
        seen.seed,
        seen.closely,
    )
    used = [port.key for port in ports_of(scenario)[: run.spec.ranks_per_node]]
    ports: Any = dict.fromkeys(used, "queue_pair") if seen.ports_are_known else {}
    jobs = _of_jobs(run, seen, clock, ports)
    told = [*_of_log(run, seen, clock), *_of_dumps(run, seen, clock)] if seen.has_log else []
    extra = sorted((*jobs, *told), key=moment_ns)
    yield from heapq.merge(fabric_observed(scenario, watch), extra, key=moment_ns)


def _of_jobs(run: Run, seen: Seen, clock: speaker.Clock, ports: Any) -> Iterator[Observation]:
    """The agent is started later than the job."""
    first_ns = ORIGIN_NS + round((seen.begin + 1.0) * SECOND_NS)
    for one in found.jobs_observed(run, seen.node, ORIGIN_NS, clock, ports):
        yield replace(one, monotonic_ns=max(first_ns, one.monotonic_ns))


def _of_log(run: Run, seen: Seen, clock: speaker.Clock) -> Iterator[Observation]:
    """Read as it is written, from where it stood when the agent was started."""
    stream = LogStream(f"slurm-{run.spec.job}.out", scope="node000")
    rng = random.Random(seen.seed)
    for line in node_log(run, seen.node, clock):
        read_at = line.at + rng.uniform(0.0, _POLL_SECONDS)
        if line.at < seen.begin or read_at > seen.end:
            continue
        unix_ns, monotonic_ns = clock.unix_ns(read_at), ORIGIN_NS + round(read_at * SECOND_NS)
        for finding in stream.feed(line.text.encode(), Clock(arrived_ns=unix_ns)):
            if isinstance(finding, Fault):
                yield FaultRead(replace(finding, job=run.spec.job), monotonic_ns)
            else:
                yield Noted(run.spec.job, finding, monotonic_ns)


def _of_dumps(run: Run, seen: Seen, clock: speaker.Clock) -> Iterator[Observation]:
    dumps: dict[int, Dump] = {}
    for at, rank, content in found.dumps_of(run, seen.node, clock):
        dumps[rank] = dump_of(pickle.loads(content))
        timeouts = {one for dump in dumps.values() for one in timeouts_seconds(dump)}
        monotonic_ns = ORIGIN_NS + round((at + 0.5) * SECOND_NS)
        where = tuple(standings(dumps.items()))
        yield DumpsRead(run.spec.job, where, tuple(sorted(timeouts)), monotonic_ns)
