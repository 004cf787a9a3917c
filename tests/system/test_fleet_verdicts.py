"""Of everything that can hurt a job of many nodes, the fleet's view blames the link that did it.

Simulated fleets, in each of which one thing hurts one job: what all nodes tell, some of it late
and by clocks that are off, is heard by the view alone. FLAPD_SEED chooses them; a tenth runs with
every `make test`, all with `long`.
"""

import os
import random
import sys
from collections import Counter

import pytest

from flapd.model.fleet import NodeEvent
from flapd.model.incident import Incident
from simulators.cluster.beats import BEAT_SECONDS
from tests.system.fleet_cases import KINDS, Case, cases
from tests.system.fleet_judge import BLAMED, Heard, heard, judged, losses, told_of

SEED = int(os.environ.get("FLAPD_SEED", "1"))
CASES = 110
RIGHT = 0.95
STALL_SHARE = 0.25
"""By which the likely loss of a stall may be off."""


def some(count: int) -> list[Case]:
    return list(cases(range(SEED * 1100, SEED * 1100 + count)))


counts = pytest.mark.parametrize(
    "count",
    [CASES // 10, pytest.param(CASES, marks=pytest.mark.long)],
    ids=["a tenth", "all"],
)


@counts
def test_the_link_that_did_it_is_named_and_no_other_and_the_loss_is_counted_once(
    count: int,
) -> None:
    table: Counter[tuple[str, str, str]] = Counter()
    wrong = 0
    for case in some(count):
        told = told_of(case.fleet)
        verdict = judged(case, told)
        table[case.name, verdict.answer, "wrong" if verdict.wrong else ""] += 1
        if verdict.wrong:
            wrong += 1
            sys.stdout.write(f"  wrong: {case}: {verdict.wrong}\n")
        assert "innocent" not in verdict.wrong or "caused" not in verdict.wrong, case
        assert_counted_once(case, told)
    sys.stdout.write(f"FLAPD_SEED={SEED}\n")
    for (name, answer, is_wrong), number in sorted(table.items()):
        sys.stdout.write(f"{name:15} {answer:25} {is_wrong:6} {number:4}\n")

    assert {name for name, _, _ in table} == set(KINDS)
    assert wrong <= (1 - RIGHT) * count


def assert_counted_once(case: Case, told: list[Incident]) -> None:
    """All GPUs of the job, for the time that it stood still, in one incident."""
    for story in case.by_links:
        ids = {link.id for link in story.links}
        blaming = [
            one
            for one in losses(told, story.job)
            if one.verdict in BLAMED and one.causes and one.causes[0].flap in ids
        ]
        assert len(blaming) <= 1, case
        for one in blaming:
            assert one.affected_gpus == story.world_size, case
            assert one.gpu_seconds is not None
            assert one.lost_seconds is not None
            likely = one.lost_seconds.likely * story.world_size
            assert one.gpu_seconds.likely == pytest.approx(likely, rel=0.01), case
            if story.kind == "stall":
                near = pytest.approx(story.gpu_seconds, rel=STALL_SHARE, abs=story.world_size)
                assert one.gpu_seconds.likely == near, case


@counts
def test_whatever_comes_late_doubled_or_out_of_order_the_same_is_told_in_the_end(
    count: int,
) -> None:
    """Also by another hub, and by one that hears all of it at once."""
    for case in some(count)[:: max(5, count // 20)]:
        fleet, rng = case.fleet, random.Random(case.seed)
        all_heard = list(heard(fleet))
        events = [one.told for one in all_heard if isinstance(one.told, NodeEvent)]
        events += rng.choices(events, k=len(events) // 4)
        rng.shuffle(events)
        late = [Heard(fleet.end, one) for one in events]
        # Heartbeats are kept by nobody: whoever comes late hears those from then on.
        late += [Heard(*one) for one in fleet.beats(fleet.end, fleet.end + 6 * BEAT_SECONDS)]

        first, second = (sorted(told_of(fleet, one), key=by_id) for one in (all_heard, late))

        assert [known(one) for one in first] == [known(one) for one in second], case


def by_id(incident: Incident) -> str:
    return incident.id


def known(incident: Incident) -> tuple[object, ...]:
    """All but how often it was told, and what took the place of what on the way."""
    return (
        incident.id,
        incident.verdict,
        incident.open,
        incident.nodes,
        incident.jobs,
        incident.shared_cause,
        incident.symptoms,
        tuple((one.flap, round(one.probability, 6)) for one in incident.causes),
        incident.gpu_seconds,
    )
