"""Survival: how long outages last, where some of them were not seen to their end."""

from collections.abc import Sequence

import msgspec


class Observed(msgspec.Struct, frozen=True, order=True):
    """One outage, down until usable; `censored`: it lasted longer, the job died first."""

    seconds: float
    censored: bool = False


def weights(ordered: Sequence[Observed], counts: Sequence[int]) -> list[float]:
    """The chance of each duration, and last that of more than any (Kaplan and Meier 1958).

    `ordered` is sorted and each stands for `counts` outages. A censored one gives its share to
    the longer ones, and has none itself.
    """
    at_risk, surviving = sum(counts), 1.0
    shares = []
    for one, count in zip(ordered, counts, strict=True):
        share = 0.0 if one.censored or not count else surviving * count / at_risk
        shares.append(share)
        surviving -= share
        at_risk -= count
    return [*shares, max(0.0, surviving)]
