"""What fails with one job by a fault of ours keeps no other from being told of."""

from flapd.model.given import exactly
from tests.core.fleet.fleets import job, looked, outage, stopped_by, view, watched

POISON = {"watchdog_seconds": exactly("soon", "environment"), "retry_cnt": exactly(None, "log")}


def test_a_job_that_cannot_be_worked_out_is_named_and_the_others_are_told() -> None:
    fleet = view()
    watched(fleet, range(2))

    found = looked(
        fleet,
        job(0, "4711"),
        job(1, "4712", policy=POISON),
        outage(0, 100.0, 12.0),
        outage(1, 100.0, 12.0),
        stopped_by(0, 100.2, 17.0, job="4711"),
        stopped_by(1, 100.2, 17.0, job="4712"),
    )

    assert {(one.job, one.verdict) for one in found} == {("4711", "caused")}
    assert {place for place, _error in fleet.left_out()} == {"4712"}
    assert fleet.left_out() == []


def test_what_was_told_of_a_job_stays_until_it_can_be_worked_out_again() -> None:
    fleet = view()
    watched(fleet, range(1))
    sound = job(0)
    (told,) = looked(fleet, sound, outage(0, 100.0, 12.0), stopped_by(0, 100.2, 17.0))

    assert looked(fleet, job(0, policy=POISON, revision=2)) == []
    assert [place for place, _error in fleet.left_out()] == ["4711"]
    assert looked(fleet, job(0, policy=sound.policy, revision=3)) == []
    assert fleet.left_out() == []
    assert told.verdict == "caused"
