"""Repeats: a port that flaps again and again, and how often chance alone would meet as much.

Two answers, since flaps come in bursts and at fixed hours: by a rate of symptoms (binomial), and by
all ways in which the port's flaps can be shifted along the time in which both are known.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from flapd.core.cost.chance import as_many_by_chance, met_by_chance
from flapd.core.spans import Span, union
from flapd.model.times import SECOND_NS

FEWEST = 3
"""Flaps, of which fewer repeat nothing."""
_MOST_FLAPS, _MOST_SYMPTOMS = 24, 64
"""The newest: what is reckoned grows with both."""


class Repeats(msgspec.Struct, frozen=True):
    flaps: int
    """Those closer together than the window are one."""
    met: int
    """After which something hit the job within the window."""
    by_rate: float
    """p-value of as many or more, if symptoms come at the rate at which they come elsewhere."""
    by_shift: float
    """Share of all shifts along the time that meet as many or more."""


def repeats_of(
    starts: Sequence[int], symptoms: Sequence[int], window: Span, known: Span
) -> Repeats | None:
    """None: too few. Times in nanoseconds, in order; a window runs from a flap to a symptom.

    `known` is the time in which all of both are known.
    """
    trials: Sequence[int] = _apart(_within(starts, known), window[1] - window[0])[-_MOST_FLAPS:]
    told = _within(symptoms, known)[-_MOST_SYMPTOMS:]
    bounded = ((trials, _MOST_FLAPS), (told, _MOST_SYMPTOMS))
    first = max([known[0], *(ones[0] for ones, most in bounded if len(ones) == most)])
    trials, told = _within(trials, (first, known[1])), _within(told, (first, known[1]))
    if len(trials) < FEWEST or not told:
        return None
    windows = [(one + window[0], one + window[1]) for one in trials]
    met = sum(_holds(told, one) for one in windows)
    length_ns = max(1, known[1] - first)
    return Repeats(
        len(trials),
        met,
        as_many_by_chance(len(trials), met, _chance(told, windows, length_ns)),
        _share_of_shifts(trials, told, window, length_ns, met),
    )


def _apart(starts: Iterable[int], width_ns: int) -> list[int]:
    found: list[int] = []
    for ns in starts:
        if not found or ns - found[-1] > width_ns:
            found.append(ns)
    return found


def _within(times: Sequence[int], span: Span) -> Sequence[int]:
    return times[bisect_left(times, span[0]) : bisect_right(times, span[1])]


def _holds(times: Sequence[int], span: Span) -> bool:
    place = bisect_left(times, span[0])
    return place < len(times) and times[place] <= span[1]


def _chance(symptoms: Sequence[int], windows: Sequence[Span], length_ns: int) -> float:
    """That one window holds a symptom, by the rate of those that lie in none."""
    elsewhere = sum(not any(low <= ns <= high for low, high in windows) for ns in symptoms)
    rate = (elsewhere + 0.5) * SECOND_NS / length_ns
    return met_by_chance(rate, (windows[0][1] - windows[0][0]) / SECOND_NS)


def _share_of_shifts(
    trials: Sequence[int], symptoms: Sequence[int], window: Span, length_ns: int, met: int
) -> float:
    """A sweep over all shifts, counting the flaps that meet a symptom at each."""
    if met == 0:
        return 1.0
    steps = [
        step
        for trial in trials
        for begin, end in union(_shifts(trial, symptoms, window, length_ns))
        for step in ((begin, 1), (end, -1))
    ]
    covered, meeting, since_ns = 0, 0, 0
    for ns, step in sorted(steps):
        if meeting >= met:
            covered += ns - since_ns
        meeting, since_ns = meeting + step, ns
    return covered / length_ns


def _shifts(trial: int, symptoms: Sequence[int], window: Span, length_ns: int) -> Iterator[Span]:
    """By which this flap would meet a symptom; what is shifted over the end comes in again."""
    for symptom in symptoms:
        begin = (symptom - trial - window[1]) % length_ns
        end = begin + min(window[1] - window[0], length_ns)
        yield begin, min(end, length_ns)
        if end > length_ns:
            yield 0, end - length_ns
