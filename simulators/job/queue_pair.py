"""QueuePair: what was sent and not acknowledged is sent again, until that helps or it gives up."""

import random
from collections.abc import Callable, Iterator
from typing import NamedTuple

from simulators.job.spec import JobSpec

_FIRST_ADAPTIVE_SECONDS = 0.002
"""perftest, issue 251: retransmissions 2, 4, 8, 16 ms apart, irrespective of the timeout."""
_ROUNDING_SECONDS = 1e-9
_UNLIKE = 0.05


class QueuePair(NamedTuple):
    """One end of a connection: `owner` sends to `peer`, both ranks of the job."""

    owner: int
    peer: int
    factor: float
    """How many times the nominal time its timer takes."""


class Fate(NamedTuple):
    """When a queue pair that met a missing path went on, or gave up; `at` None: never either."""

    queue_pair: QueuePair
    at: float | None
    gave_up: bool


def queue_pairs(spec: JobSpec, node: int, port: int) -> list[QueuePair]:
    """All that cross this port: to and from both neighbours in the ring of its rail."""
    own = spec.rank_of(node, port)
    neighbours = {spec.rank_of(node + 1, port), spec.rank_of(node - 1, port)} - {own}
    # Receivers write as well: they tell the sender where to put the data.
    ends = [(own, other) for other in sorted(neighbours)]
    ends += [(other, own) for other in sorted(neighbours)]
    return [
        QueuePair(owner, peer, factor) for owner, peer in ends for factor in _factors(spec, owner)
    ]


def _factors(spec: JobSpec, owner: int) -> list[float]:
    """A card has a clock of its own, and its queue pairs differ but little."""
    shortest, longest = spec.transport.spread
    rng = random.Random(f"{spec.seed} card of {owner}")
    card = rng.uniform(shortest, longest)
    pairs = range(spec.transport.queue_pairs)
    return [min(longest, card * (1 + _UNLIKE * rng.random())) for _ in pairs]


def fate_of(
    queue_pair: QueuePair, spec: JobSpec, sent_at: float, is_usable: Callable[[float], bool]
) -> Fate:
    """Of what was sent at `sent_at` into a path that was missing."""
    at = None
    for at in _attempts(queue_pair, spec, sent_at):
        if is_usable(at + _ROUNDING_SECONDS):
            return Fate(queue_pair, at, gave_up=False)
    return Fate(queue_pair, _given_up_at(queue_pair, spec, sent_at, at), gave_up=True)


def _attempts(queue_pair: QueuePair, spec: JobSpec, sent_at: float) -> Iterator[float]:
    if spec.tick_seconds is None:
        return
    interval = spec.tick_seconds * queue_pair.factor
    if not spec.transport.adaptive:
        yield from (sent_at + number * interval for number in range(1, _tries(spec) + 1))
        return
    total = _adaptive_total(queue_pair, spec)
    wait, passed = _FIRST_ADAPTIVE_SECONDS, 0.0
    while passed + min(wait, interval) <= total + _ROUNDING_SECONDS:
        passed += min(wait, interval)
        wait *= 2
        yield sent_at + passed


def _given_up_at(
    queue_pair: QueuePair, spec: JobSpec, sent_at: float, last: float | None
) -> float | None:
    if spec.tick_seconds is None:
        return None
    if spec.transport.adaptive:
        return sent_at + _adaptive_total(queue_pair, spec)
    assert last is not None
    return last


def _adaptive_total(queue_pair: QueuePair, spec: JobSpec) -> float:
    assert spec.tick_seconds is not None
    nominal = _tries(spec) * spec.tick_seconds * queue_pair.factor
    own = spec.transport.adaptive_total_seconds
    return nominal if own is None else min(own, nominal)


def _tries(spec: JobSpec) -> int:
    return max(1, spec.transport.retry_cnt + spec.transport.first_try_counts)
