"""A moment as somebody on call types it: which one it is, and in which zone."""

from datetime import datetime, timezone

import pytest

from flapd.cli.asked_time import AskedTime, asked_time
from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS


def at(written: str) -> int:
    return round(datetime.fromisoformat(written).timestamp()) * SECOND_NS


NOW = at("2026-11-30T09:00:30+00:00")


def asked(written: str, now: int = NOW, *, utc: bool = True) -> AskedTime:
    found = asked_time(written, now, utc)
    assert found is not None
    return found


def test_a_time_of_day_is_the_last_such_minute_that_has_begun() -> None:
    past, not_yet, just_now = asked("03:12"), asked("23:50"), asked("9:00")

    assert past == (
        at("2026-11-30T03:12:00+00:00"),
        at("2026-11-30T03:13:00+00:00") - 1,
        "2026-11-30 03:12 UTC",
    )
    assert not_yet.first_ns == at("2026-11-29T23:50:00+00:00")
    assert just_now.first_ns == at("2026-11-30T09:00:00+00:00")


def test_with_seconds_it_is_that_second() -> None:
    assert asked("03:12:07") == (
        at("2026-11-30T03:12:07+00:00"),
        at("2026-11-30T03:12:08+00:00") - 1,
        "2026-11-30 03:12:07 UTC",
    )


def test_a_time_of_day_is_local_and_its_zone_is_told(zone_of_new_york: None) -> None:
    found = asked("03:12", utc=False)

    assert found.first_ns == at("2026-11-30T03:12:00-05:00")
    assert found.said == "2026-11-30 03:12 UTC-05:00"


def test_it_is_by_the_clock_on_the_wall_where_that_was_set_in_between(
    zone_of_new_york: None,
) -> None:
    """Summer time ended on 2026-11-01 at 2:00."""
    found = asked("23:00", at("2026-11-01T12:00:00-05:00"), utc=False)

    assert found.first_ns == at("2026-10-31T23:00:00-04:00")
    assert found.said == "2026-10-31 23:00 UTC-04:00"


def test_an_age_and_rfc_3339_are_moments() -> None:
    age, moment = asked("2h"), asked("2026-11-30T03:12:07+01:00")

    assert (age.first_ns, age.last_ns) == (NOW - 7200 * SECOND_NS,) * 2
    assert (moment.first_ns, moment.said) == (
        at("2026-11-30T02:12:07+00:00"),
        "2026-11-30 02:12:07 UTC",
    )


@pytest.mark.parametrize("name", ["incident-0123456789abcdef", "4711", "24:00", "latest", ""])
def test_what_is_no_time_is_a_name(name: str) -> None:
    assert asked_time(name, NOW, utc=True) is None


@pytest.mark.parametrize(
    "written", ["2026-11-30", "2026-11-30T03:12", "2026-02-30T00:00:00Z", "1.2.3s", "99999999999d"]
)
def test_a_time_that_is_written_wrongly_says_what_would_be_right(written: str) -> None:
    with pytest.raises(FlapdError, match="RFC 3339"):
        asked_time(written, NOW, utc=True)


def test_now_is_never_in_the_future() -> None:
    midnight = datetime(2026, 11, 30, tzinfo=timezone.utc)
    assert asked("00:00", round(midnight.timestamp()) * SECOND_NS).said == "2026-11-30 00:00 UTC"
