"""What a death cost: how long until all was over, until data moved again, and the work undone.

The job of these tests is started 100 s before its traffic, unless a test says otherwise.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.cost.settings import JobSettings
from flapd.core.incident.incidents import incidents_of
from flapd.model.duration import parse_duration
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.incident import Incident
from flapd.model.job import Job
from flapd.model.loss import Parts
from flapd.model.stall import Stall
from tests.core.incident.parts import evidence, job, ns, outage, stall, transport_error

HALF_AN_HOUR = JobSettings(checkpoint_interval=parse_duration("30m"))
AT, DOWN, STOOD = 50_000.0, 60.0, 90.0
"""A flap, and how long the traffic stood still until the processes were gone."""


def attempt(begin: float, end: float | None, **known: Any) -> Job:
    told: dict[str, Any] = {
        "id": f"job-4711-{begin:g}",
        "since_unix_ns": ns(begin),
        "until_unix_ns": None if end is None else ns(end),
        "traffic_since_unix_ns": ns(begin + 100),
    }
    return job(**(told | known))


def killed(*more: Outage | Fault | Stall | Job, **known: Any) -> Incident:
    """The incident of the flap that ended the first attempt."""
    found = incidents_of(
        evidence(outage(AT, DOWN), stall(AT, STOOD), *more, **({"job": HALF_AN_HOUR} | known))
    )
    return next(one for one in found if one.begin_unix_ns <= ns(AT + 1) and one.causes)


def parts_of(incident: Incident) -> Parts:
    assert incident.parts is not None
    return incident.parts


def first(worked: float, **known: Any) -> Job:
    """The attempt that the flap ended, after it had worked for so long."""
    return attempt(AT - worked - 100, AT + STOOD, **known)


def checkpoint(at: float, seconds: float = 30.0, **known: Any) -> Stall:
    told: dict[str, Any] = {"stall_class": "unknown", "expected_seconds": 1.0}
    return stall(at, seconds, **(told | known))


def test_the_restart_is_measured_from_the_end_of_all_to_the_first_traffic_of_the_next() -> None:
    found = killed(first(5000), attempt(AT + 300, None))

    assert (found.verdict, found.regime) == ("caused", "transport_abort")
    parts = parts_of(found)
    assert parts.detect + parts.propagation == pytest.approx(STOOD)
    assert parts.restart == pytest.approx(400 - STOOD)


def test_with_an_error_the_wait_is_told_apart_from_the_way_down() -> None:
    found = killed(first(5000), attempt(AT + 300, None), transport_error(AT + 31))

    parts = parts_of(found)
    assert parts.detect == pytest.approx(31)
    assert parts.propagation == pytest.approx(STOOD - 31)
    assert parts.restart == pytest.approx(400 - STOOD)


def test_a_job_that_was_started_again_has_not_merely_stalled() -> None:
    found = killed(first(5000), attempt(AT + 300, None, traffic_since_unix_ns=None))

    assert found.regime == "transport_abort"
    assert parts_of(found).restart == 300, "assumed: its traffic is not seen yet"


def test_until_it_is_back_the_incident_goes_on_and_some_never_come_back() -> None:
    def is_open(*attempts: Job, now: float) -> bool:
        return killed(*attempts, now_ns=ns(AT + now)).open

    assert is_open(first(5000), now=400)
    assert not is_open(first(5000), attempt(AT + 300, None), now=400)
    assert not is_open(first(5000), now=STOOD + 601)


def test_work_since_the_last_pause_that_was_a_checkpoint_is_done_again() -> None:
    """Two were due and seen: after 1,800 s, and 1,800 s after the end of that."""
    began = AT - 4500
    pauses = (checkpoint(began + 1802), checkpoint(began + 3640))

    found = killed(first(4500), attempt(AT + 300, None), *pauses)

    assert parts_of(found).rework == pytest.approx(4500 - 3670)
    assert found.assumed_share == 0


def test_a_pause_that_comes_when_none_is_due_is_none() -> None:
    began = AT - 2500
    pauses = (checkpoint(began + 1810), checkpoint(began + 2200))

    found = killed(first(2500), *pauses)

    assert parts_of(found).rework == pytest.approx(2500 - 1840 - 30), "nor is it work"


def test_a_checkpoint_that_the_job_announced_needs_no_interval() -> None:
    saved = checkpoint(AT - 400, stall_class="checkpoint")

    found = killed(first(2500), saved, job=JobSettings())

    assert parts_of(found).rework == pytest.approx(370)


def test_what_nobody_configured_is_learned_from_how_pauses_come() -> None:
    """Two attempts before it paused 1,200 s after their begin."""
    earlier = [
        one
        for begin in (AT - 7300, AT - 4700)
        for one in (attempt(begin, begin + 2000), checkpoint(begin + 100 + 1200, 20))
    ]

    found = killed(first(1500), checkpoint(AT - 298, 20), *earlier, job=JobSettings())

    assert parts_of(found).rework == pytest.approx(278)


def test_where_checkpoints_pause_nothing_they_come_by_the_clock() -> None:
    found = killed(first(4500))

    assert parts_of(found).rework == pytest.approx(4500 - 2 * 1800)
    assert found.lost_seconds is not None
    assert found.lost_seconds.high - found.lost_seconds.low >= 1800, "or when nobody knows"


@pytest.mark.parametrize("known", [{}, {"traffic_since_unix_ns": None}], ids=["seen", "not seen"])
def test_a_job_cannot_lose_more_work_than_it_has_done(known: dict[str, Any]) -> None:
    found = killed(first(200, **known), job=JobSettings())

    worked = 300 if known else 200
    assert parts_of(found).rework == pytest.approx(worked)
    assert found.lost_seconds is not None
    assert found.lost_seconds.high <= STOOD + 660 + worked + 1


def test_a_young_job_bounds_only_what_is_longer() -> None:
    found = killed(first(5000), job=JobSettings())

    assert parts_of(found).rework == 900


def test_a_checkpoint_soon_after_a_stall_is_not_charged_to_the_flap() -> None:
    short = (outage(AT, 2), stall(AT, 4.3), checkpoint(AT + 5.3, 30))
    (found,) = incidents_of(evidence(attempt(0, None), *short))

    assert (found.verdict, found.regime) == ("caused", "absorbed")
    assert parts_of(found).stall == pytest.approx(4.3)


@given(
    st.floats(1, 10_000),
    st.lists(st.tuples(st.floats(1, 9_000), st.floats(1, 60)), max_size=6),
    st.sampled_from([None, "10m", "30m", "1h"]),
    st.booleans(),
)
def test_however_it_pauses_the_work_undone_is_at_most_what_was_done(
    worked: float, pauses: list[tuple[float, float]], interval: str | None, is_seen: bool
) -> None:
    known = {} if is_seen else {"traffic_since_unix_ns": None}
    stalls = [checkpoint(AT - worked + at, length) for at, length in pauses if at + 61 < worked]
    every = None if interval is None else parse_duration(interval)

    found = killed(first(worked, **known), *stalls, job=JobSettings(checkpoint_interval=every))

    assert found.lost_seconds is not None
    assert found.lost_seconds.low <= found.lost_seconds.likely <= found.lost_seconds.high
    assert 0 <= parts_of(found).rework <= worked + (0 if is_seen else 100) + 1e-6
