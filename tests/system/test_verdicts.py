"""Of everything that can hurt a job, flapd blames the flap that did it, and no other.

Simulated jobs, each with one symptom whose cause is known, are shown to the engine as one of
their nodes would see them, half of them without any log. FLAPD_SEED chooses them; a tenth runs
with every `make test`, all with `long`.
"""

import os
import sys
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import pytest

from flapd.core.incident.sayings import verdicts_in
from flapd.model.event import Outage
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from simulators.job import happenings
from tests.system.replayed import UNIX_OF_ORIGIN_NS, Seen, Told, replay
from tests.system.verdict_cases import (
    AT,
    HERE,
    INNOCENT_SEEDS,
    SEEDS,
    Case,
    negatives,
    positives,
)

SEED = int(os.environ.get("FLAPD_SEED", "1"))
LEARNING_SECONDS = 120.0
"""So long the agent has watched the job before anything happens."""
AFTERWARDS_SECONDS = 150.0
SHORTEST_SECONDS = 0.3
"""What is shorter than a few samples nobody can see at 10 Hz."""
BLAMED = ("caused", "likely")


class Judged(NamedTuple):
    case: Case
    answer: str
    """The verdict on the symptom, `none` where no incident was told of it."""
    is_right: bool


def told_of(case: Case) -> Told:
    run = case.run
    ended = run.attempts[-1].end is not None
    seen = Seen(
        node=HERE,
        begin=AT - LEARNING_SECONDS,
        end=run.truth.end + (AFTERWARDS_SECONDS if ended else 0.0),
        has_log=case.has_log,
        ports_are_known=case.seed % 2 == 0,
        seed=case.seed,
    )
    told = replay(run, seen)
    for one in told.incidents:
        assert verdicts_in(one.explanation) == [one.verdict], f"{case}: {one.explanation}"
    return told


def symptomatic(told: Told) -> list[Incident]:
    """Incidents of something that hurt: an outage alone has no symptom."""
    return [one for one in told.incidents if one.symptoms]


def is_of(outage: Outage, flap: happenings.Outage) -> bool:
    at_ns = UNIX_OF_ORIGIN_NS + round(flap.at_seconds * SECOND_NS)
    return outage.down.earliest_unix_ns <= at_ns <= outage.down.latest_unix_ns


def judged_cause(case: Case) -> Judged:
    """Right where the flap that did it comes first and is blamed."""
    told = told_of(case)
    (flap,) = case.run.spec.happenings
    assert isinstance(flap, happenings.Outage)
    mine = {one.id for one in told.outages if is_of(one, flap)}
    blaming = [
        one.verdict
        for one in symptomatic(told)
        if one.verdict in BLAMED and one.causes and one.causes[0].flap in mine
    ]
    if blaming:
        return Judged(case, blaming[0], is_right=True)
    others = sorted({one.verdict for one in symptomatic(told)})
    return Judged(case, "+".join(others) or "none", is_right=False)


def judged_innocent(case: Case) -> Judged:
    verdicts = {one.verdict for one in symptomatic(told_of(case))}
    blamed = [one for one in BLAMED if one in verdicts]
    answer = blamed[0] if blamed else "+".join(sorted(verdicts)) or "none"
    return Judged(case, answer, is_right=not blamed)


def is_denied(judged: Judged) -> bool:
    """It was a link, though not of this node, and that is ruled out."""
    return judged.case.name == "remote outage" and "not_fabric" in judged.answer


def show(text: str) -> None:
    """Seen with `pytest -s`, and beside a failure."""
    sys.stdout.write(f"{text}\n")


def show_matrix(judged: Iterable[Judged]) -> None:
    """What it was, and what was said of it."""
    counts: Counter[tuple[str, str]] = Counter()
    for one in judged:
        assert one.case.symptom is not None
        counts[f"{one.case.name}, {one.case.symptom.kind}, flap {one.case.flap}", one.answer] += 1
        if not one.is_right:
            show(f"  wrong: {one.answer} for {one.case}: {one.case.symptom}")
    show(f"FLAPD_SEED={SEED}")
    for (what, answer), count in sorted(counts.items()):
        show(f"{what:42} {answer:30} {count:4}")


def seeds(count: int) -> range:
    return range(SEED * 1000, SEED * 1000 + count)


@pytest.mark.parametrize(
    "count", [SEEDS // 10, pytest.param(SEEDS, marks=pytest.mark.long)], ids=["a tenth", "all"]
)
def test_a_flap_that_hurt_a_job_is_found_to_have_done_it(count: int) -> None:
    cases = list(positives(seeds(count)))
    asked = [
        one
        for one in cases
        if one.symptom is not None and one.symptom.end - one.symptom.begin >= SHORTEST_SECONDS
    ]
    judged = [judged_cause(case) for case in asked]
    show_matrix(judged)
    show(f"{len(cases) - len(asked)} of {len(cases)} flaps were felt by nobody")

    right = sum(one.is_right for one in judged)
    assert right >= 0.95 * len(judged)


@pytest.mark.parametrize(
    "count",
    [
        INNOCENT_SEEDS // 10,
        pytest.param(INNOCENT_SEEDS, marks=pytest.mark.long),
    ],
    ids=["a tenth", "all"],
)
def test_no_flap_is_blamed_for_what_something_else_did(count: int) -> None:
    judged = [judged_innocent(case) for case in negatives(seeds(count))]
    show_matrix(judged)

    answers = Counter(one.answer for one in judged)
    assert answers["caused"] == 0
    assert answers["likely"] <= 0.02 * len(judged)
    assert [str(one.case) for one in judged if is_denied(one)] == []
