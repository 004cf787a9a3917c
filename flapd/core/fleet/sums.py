"""Sums: what several jobs lost by one cause; seconds are of a GPU on the average."""

from collections.abc import Iterable, Sequence

from flapd.model.incident import Incident
from flapd.model.loss import Parts, Range, Regime


def sum_of_counts(counts: Iterable[int | None]) -> int | None:
    """Of those that are known; None: none is."""
    known = [one for one in counts if one is not None]
    return sum(known) if known else None


def sum_of_ranges(ranges: Iterable[Range | None]) -> Range | None:
    """Of those that are known; None: none is."""
    known = [one for one in ranges if one is not None]
    if not known:
        return None
    return Range(
        sum(one.low for one in known),
        sum(one.likely for one in known),
        sum(one.high for one in known),
    )


def mean_of_ranges(told: Sequence[Incident]) -> Range | None:
    known = [(_gpus(one), one.lost_seconds) for one in told if one.lost_seconds is not None]
    if not known:
        return None
    return Range(
        _mean([(gpus, lost.low) for gpus, lost in known]),
        _mean([(gpus, lost.likely) for gpus, lost in known]),
        _mean([(gpus, lost.high) for gpus, lost in known]),
    )


def mean_of_parts(told: Sequence[Incident]) -> Parts | None:
    known = [(_gpus(one), one.parts) for one in told if one.parts is not None]
    if not known:
        return None
    names = Parts.__struct_fields__
    return Parts(
        **{name: _mean([(gpus, getattr(parts, name)) for gpus, parts in known]) for name in names}
    )


def mean_of_regimes(told: Sequence[Incident]) -> dict[Regime, float]:
    known = [(_gpus(one), one.regimes) for one in told if one.regimes]
    names = sorted({name for _, regimes in known for name in regimes})
    return {
        name: _mean([(gpus, regimes.get(name, 0.0)) for gpus, regimes in known]) for name in names
    }


def mean_share(told: Sequence[Incident]) -> float | None:
    """That is assumed, of what was lost."""
    known = [(_lost(one), one.assumed_share) for one in told if one.assumed_share is not None]
    if not known:
        return None
    whole = sum(lost for lost, _ in known)
    return _mean([(lost, share) for lost, share in known]) if whole else 0.0


def _gpus(incident: Incident) -> float:
    return float(incident.affected_gpus or 1)


def _lost(incident: Incident) -> float:
    return 0.0 if incident.lost_seconds is None else _gpus(incident) * incident.lost_seconds.likely


def _mean(weighted: Sequence[tuple[float, float]]) -> float:
    return sum(weight * value for weight, value in weighted) / sum(w for w, _ in weighted)
