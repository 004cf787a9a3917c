"""Chance: how likely it is that a flap and a fault only happened to meet."""

import math
from collections.abc import Sequence


def met_by_chance(flaps_per_second: float, window_seconds: float) -> float:
    """p0: one or more flaps fall into the window anyway (Poisson)."""
    return -math.expm1(-flaps_per_second * window_seconds)


def shares_of_blame(weights: Sequence[float], others_per_second: float) -> tuple[float, ...]:
    """The chance of each flap, and last of no flap, to be the cause of a fault that happened.

    A weight is the chance that the flap causes such a fault times the density of its lag, a
    second (probabilistic declustering of a mutually exciting process).
    """
    whole = others_per_second + sum(weights)
    return tuple(one / whole for one in (*weights, others_per_second))


def as_many_by_chance(trials: int, hits: int, chance: float) -> float:
    """The p-value of `hits` or more, each by this chance (binomial)."""
    return math.fsum(
        math.comb(trials, n) * chance**n * (1 - chance) ** (trials - n)
        for n in range(hits, trials + 1)
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjusted for having looked at so many ports, in the order given (Holm 1979)."""
    adjusted = [0.0] * len(p_values)
    highest = 0.0
    by_size = sorted(range(len(p_values)), key=lambda place: p_values[place])
    for rank, place in enumerate(by_size):
        highest = max(highest, min(1.0, (len(p_values) - rank) * p_values[place]))
        adjusted[place] = highest
    return adjusted
