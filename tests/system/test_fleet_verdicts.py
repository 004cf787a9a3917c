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
from simulators.cluster.beats import BEAT_SECONDS
from tests.system.fleet_cases import KINDS, Case, cases
from tests.system.fleet_judge import (
    Heard,
    assert_counted_once,
    heard,
    is_innocent_caused,
    judged,
    opinions,
    told_of,
)

SEED = int(os.environ.get("FLAPD_SEED", "1"))
CASES = 110
RIGHT = 0.95


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
        assert not is_innocent_caused(case, told), case
        assert_counted_once(case, told)
    sys.stdout.write(f"FLAPD_SEED={SEED}\n")
    for (name, answer, is_wrong), number in sorted(table.items()):
        sys.stdout.write(f"{name:15} {answer:25} {is_wrong:6} {number:4}\n")

    assert {name for name, _, _ in table} == set(KINDS)
    assert wrong <= (1 - RIGHT) * count


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
        late += [Heard(*one) for one in fleet.beats(fleet.end, fleet.end + 12 * BEAT_SECONDS)]

        assert opinions(told_of(fleet, all_heard)) == opinions(told_of(fleet, late)), case
