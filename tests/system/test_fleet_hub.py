"""What a real hub on a real server says of simulated fleets is true, and what its core says.

Each fleet has a server and a hub of its own: what is said of one can follow from nothing else, and
the hub's counter is that of this fleet alone. All of it happened hours ago, and is told at once, as
after a network was cut: some of it twice, and every third hub is killed in the middle.
"""

import json
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from flapd.serve.incident_words import verdict
from flapd.serve.job_items import IncidentItem
from tests.system.fleet_answers import Answers, FleetHub, ended, heard_fleet
from tests.system.fleet_cases import KINDS, Case
from tests.system.fleet_judge import (
    assert_counted_once,
    blamed_loss,
    is_innocent_caused,
    judged,
    opinions,
)
from tests.system.harness import until
from tests.system.running_hub import RunningHub, union
from tests.system.test_fleet_verdicts import CASES, RIGHT, SEED, some

pytestmark = pytest.mark.system

COUNTED_SHARE = 0.05
"""By which the counter may be off: what it has counted too early it cannot take back."""
SOME = (2, 4, 7)
"""A link of a small fleet, each of whose nodes has a journal; a switch; and one of two jobs."""


def test_a_real_hub_says_of_some_fleets_what_is_true_and_counts_each_loss_once(
    tmp_path: Path,
) -> None:
    cases = some(CASES)
    for number in SOME:
        assert not wrong_of(cases[number], tmp_path / str(number), is_killed=number == SOME[-1])


@pytest.mark.long
def test_a_real_hub_names_the_link_that_did_it_and_no_other_over_a_hundred_fleets(
    tmp_path: Path,
) -> None:
    table: Counter[tuple[str, str]] = Counter()
    for number, case in enumerate(some(CASES)):
        wrong = wrong_of(case, tmp_path / str(number), is_killed=number % 3 == 0)
        table[case.name, wrong] += 1
        if wrong:
            sys.stdout.write(f"  wrong: {case}: {wrong}\n")
    sys.stdout.write(f"FLAPD_SEED={SEED}\n")
    for (name, wrong), number in sorted(table.items()):
        sys.stdout.write(f"{name:15} {'wrong' if wrong else 'right':6} {number:4}\n")

    assert {name for name, _ in table} == set(KINDS)
    assert sum(number for (_, wrong), number in table.items() if wrong) <= (1 - RIGHT) * CASES


def wrong_of(case: Case, directory: Path, *, is_killed: bool) -> str:
    """What is wrong with whom it names; AssertionError where it says what it never may."""
    with heard_fleet(ended(case.fleet), directory, is_killed=is_killed) as heard:
        heard.hub.holds(union(one.event for one in heard.stored()))
        answers = settled(heard)
        assert_commands_tell(heard.hub, answers)

    assert not is_innocent_caused(case, answers.incidents), case
    assert_counted_once(case, answers.incidents)
    assert_charged_once(answers)
    return judged(case, answers.incidents).wrong


def settled(heard: FleetHub) -> Answers:
    """What the hub says in the end; AssertionError where that is not what its core says."""
    by_core = opinions(heard.told_by_core())
    with suppress(AssertionError):
        until(lambda: agree(heard.answers(), by_core), "the same opinion")
    answers = heard.answers()
    assert opinions(answers.incidents) == by_core, heard.fleet.spec
    assert counted(answers) == pytest.approx(blamed(answers), rel=COUNTED_SHARE), heard.fleet.spec
    return answers


def agree(answers: Answers, by_core: dict[str, tuple[object, ...]]) -> bool:
    lost = blamed(answers)
    return opinions(answers.incidents) == by_core and abs(counted(answers) - lost) <= 1e-6 * lost


def blamed(answers: Answers) -> float:
    return sum(map(blamed_loss, answers.incidents))


def counted(answers: Answers) -> float:
    return sum(answers.lost_gpu_seconds.values())


def assert_charged_once(answers: Answers) -> None:
    """To outages no more than their jobs lost, and nothing to one cable of what many ports did."""
    by_cables = [one for one in answers.incidents if one.shared_cause is None]
    told = [one.gpu_seconds for one in by_cables if one.gpu_seconds]
    charged = sum(one.gpu_seconds.likely or 0.0 for one in answers.flaps if one.gpu_seconds)
    assert charged >= sum(map(blamed_loss, by_cables)) * (1 - 1e-6)
    in_one = {incident for flap in answers.flaps for incident in flap.incidents}
    assert all(one.symptoms or one.id in in_one for one in answers.incidents)
    assert charged <= sum(one.likely or 0.0 for one in told) * (1 + 1e-6)
    for one in answers.incidents:
        for cause in one.causes:
            of_cause = next(flap for flap in answers.flaps if flap.id == cause.flap)
            assert one.id in of_cause.incidents


def assert_commands_tell(hub: RunningHub, answers: Answers) -> None:
    """`flapd incidents`, `flaps` and `why` tell the story that the hub tells."""
    worst = max(answers.incidents, key=lambda one: (blamed_loss(one), one.id))
    story = json.loads(asked(hub, "why", worst.id, "--json"))
    told = " ".join(asked(hub, "why", worst.id, "--utc").split())
    incidents = json.loads(asked(hub, "incidents", "--json", "--limit", "1000"))["items"]
    flaps = json.loads(asked(hub, "flaps", "--json", "--limit", "1000"))["items"]

    assert msgspec.convert(incidents, list[IncidentItem]) == answers.incidents
    assert {one["id"] for one in flaps} == {one.id for one in answers.flaps}
    assert (story["id"], story["verdict"]) == (worst.id, worst.verdict)
    assert {one["id"] for one in story["flaps"]} >= {one.flap for one in worst.causes}
    if blamed_loss(worst):
        cause = worst.causes[0]
        suspect = worst.shared_cause or f"{cause.node} {cause.port}"
        assert f"{worst.id}: {verdict(worst.verdict, [suspect])}" in told
        assert f"{blamed_loss(worst):,.0f} GPU-s" in told


def asked(hub: RunningHub, *words: str) -> str:
    ended = hub.flapd(*words, "--config", str(hub.config))
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
