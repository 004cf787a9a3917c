"""Best timeout: the retry policy under which the flaps seen would have cost least."""

import math
from collections.abc import Iterable, Sequence
from itertools import islice, repeat

import msgspec
from msgspec.structs import replace

from flapd.core.cost.case import Case
from flapd.core.cost.draws import indices
from flapd.core.cost.price import price
from flapd.core.cost.survival import Observed, weights

TIMEOUTS = range(17, 26)
RETRIES = range(1, 8)
RESAMPLES = 200

_ALIKE = 1e-9


class Policy(msgspec.Struct, frozen=True):
    """A timeout with a number of retries, and what a flap costs under it."""

    ib_timeout: int
    retry_cnt: int
    budget_seconds: float
    expected_seconds: float
    """Lost by each GPU, per flap."""


class Advice(msgspec.Struct, frozen=True):
    """The best policy for the outages seen, and how sure that is."""

    best: Policy
    """Of equals, the shortest timer with the most retries."""
    fewest_retries: int
    """With the same timer as cheap."""
    margin_seconds: float
    """Budget beyond the longest outage seen; negative: it kills the job even so."""
    confidence: float
    """Share of resamples of the same outages in which this timeout is the best."""
    expected_low: float
    """Nine of ten resamples expect between this and `expected_high`."""
    expected_high: float
    policies: tuple[Policy, ...]
    """All that were compared."""
    in_force: Policy
    """That of the job, for the same outages."""


class _Study:
    """What each policy makes of each distinct duration; the last column is more than any."""

    def __init__(self, base: Case, outages: Sequence[Observed]) -> None:
        self.outages = outages
        self.distinct = sorted(set(outages))
        self._column = {one: column for column, one in enumerate(self.distinct)}
        base = replace(base, usable_after_seconds=0.0)
        self.cases = [
            replace(base, ib_timeout=timeout, retry_cnt=retries)
            for timeout in TIMEOUTS
            for retries in RETRIES
        ]
        self.in_force = base
        self._lengths = [*(one.seconds for one in self.distinct), math.inf]
        self._losses = [self._of(case) for case in self.cases]

    def expected(self, outages: Iterable[Observed]) -> list[float]:
        """Seconds lost per flap under each policy."""
        shares = self._shares(outages)
        return [_mean(losses, shares) for losses in self._losses]

    def expected_in_force(self) -> float:
        return _mean(self._of(self.in_force), self._shares(self.outages))

    def _of(self, case: Case) -> list[float]:
        return [_lost(case, length) for length in self._lengths]

    def _shares(self, outages: Iterable[Observed]) -> list[float]:
        counts = [0] * len(self.distinct)
        for one in outages:
            counts[self._column[one]] += 1
        return weights(self.distinct, counts)


def _mean(losses: Sequence[float], shares: Sequence[float]) -> float:
    """A loss without end counts only where it can be."""
    return sum(loss * share for loss, share in zip(losses, shares, strict=True) if share)


def _lost(case: Case, seconds: float) -> float:
    return price(replace(case, down_seconds=seconds)).parts.lost


def best_timeout(
    base: Case, outages: Sequence[Observed], *, resamples: int = RESAMPLES, seed: int = 1
) -> Advice:
    """The cheapest of all timeouts and retry counts; `base` says everything else.

    Needs at least one outage. `resamples` are bootstrap draws (Efron 1979).
    """
    study = _Study(base, outages)
    expected = study.expected(outages)
    winner = _cheapest(study.cases, expected)
    drawn = [study.expected(sample) for sample in _resamples(outages, resamples, seed)]
    won = [study.cases[_cheapest(study.cases, one)].ib_timeout for one in drawn]
    spread = sorted(one[winner] for one in drawn)
    policies = tuple(map(_policy, study.cases, expected))
    best = policies[winner]
    return Advice(
        best=best,
        fewest_retries=_fewest_retries(best, policies),
        margin_seconds=best.budget_seconds - study.distinct[-1].seconds,
        confidence=won.count(best.ib_timeout) / resamples,
        expected_low=spread[resamples * 5 // 100],
        expected_high=spread[(resamples * 95 - 1) // 100],
        policies=policies,
        in_force=_policy(study.in_force, study.expected_in_force()),
    )


def _policy(case: Case, expected: float) -> Policy:
    return Policy(case.ib_timeout, case.retry_cnt, case.timer.budget_seconds, expected)


def _cheapest(cases: Sequence[Case], expected: Sequence[float]) -> int:
    """A shorter timer resumes sooner; more retries with it cost nothing and are a margin."""
    least = min(expected)
    alike = (place for place, seconds in enumerate(expected) if _as_cheap(seconds, least))
    return min(alike, key=lambda place: (cases[place].ib_timeout, -cases[place].retry_cnt))


def _fewest_retries(best: Policy, policies: Iterable[Policy]) -> int:
    return min(
        one.retry_cnt
        for one in policies
        if one.ib_timeout == best.ib_timeout
        and _as_cheap(one.expected_seconds, best.expected_seconds)
    )


def _as_cheap(seconds: float, least: float) -> bool:
    return math.isclose(seconds, least, rel_tol=_ALIKE)


def _resamples(outages: Sequence[Observed], count: int, seed: int) -> Iterable[list[Observed]]:
    draws = indices(seed, len(outages))
    return ([outages[place] for place in islice(draws, len(outages))] for _ in repeat(None, count))
