"""Placed: a job of the fleet as it ran, on its nodes and hit by the downs of their ports."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from simulators.cluster.links import Down
from simulators.cluster.spec import Log, PlacedJob
from simulators.job import happenings
from simulators.job.ending import Message
from simulators.job.job import simulate
from simulators.job.record import Attempt, Run, Wait
from simulators.job.truth import Symptom

_Item = TypeVar("_Item")


class JobRun(NamedTuple):
    """`downs` by the number of the happening that they are to the job."""

    run: Run
    first_node: int
    log: Log
    downs: dict[int, Down]
    waits: dict[int, list[Wait]]
    """By the node whose queue pairs waited."""
    messages: tuple[dict[int, list[Message]], ...]
    """By attempt, and the node whose ranks said them."""

    @property
    def job(self) -> str:
        return self.run.spec.job

    @property
    def nodes(self) -> range:
        return range(self.first_node, self.first_node + self.run.spec.nodes)

    def ranks_on(self, node: int) -> range:
        size = self.run.spec.ranks_per_node
        own = node - self.first_node
        return range(own * size, (own + 1) * size)

    def node_of(self, rank: int) -> int:
        return self.first_node + self.run.spec.node_of(rank)

    def downs_in(self, symptom: Symptom) -> list[Down]:
        """Those that did it."""
        return [self.downs[number] for number in symptom.happenings if number in self.downs]

    def gone_at(self, attempt: Attempt, node: int) -> float | None:
        """When the last of its processes there was gone; None: they run."""
        if attempt.end is None:
            return None
        return max(attempt.end.ends[rank] for rank in self.ranks_on(node))


def job_run(placed: PlacedJob, downs: Iterable[Down]) -> JobRun:
    spec = placed.spec
    felt = [down for down in downs if down.node in placed.nodes and down.port < spec.ranks_per_node]
    first = len(spec.happenings)
    own = spec.happenings + tuple(_outage(placed, down) for down in felt)
    run = simulate(replace(spec, happenings=own))
    first_node = placed.first_node

    def node_of(rank: int) -> int:
        return first_node + spec.node_of(rank)

    return JobRun(
        run,
        first_node,
        placed.log,
        dict(enumerate(felt, first)),
        _grouped(run.waits, lambda wait: node_of(wait.fate.queue_pair.owner)),
        tuple(
            _grouped(one.end.messages if one.end else (), lambda said: node_of(said.rank))
            for one in run.attempts
        ),
    )


def _grouped(items: Iterable[_Item], place: Callable[[_Item], int]) -> dict[int, list[_Item]]:
    found: dict[int, list[_Item]] = {}
    for item in items:
        found.setdefault(place(item), []).append(item)
    return found


def _outage(placed: PlacedJob, down: Down) -> happenings.Outage:
    return happenings.Outage(
        down.begin,
        round(down.end - down.begin, 9),
        node=down.node - placed.first_node,
        port=down.port,
    )
