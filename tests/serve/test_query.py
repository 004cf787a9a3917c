"""Times as people write them, and query strings of any content."""

import re
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.errors import ApiError
from flapd.serve.parameter import instant, read_parameters, span
from flapd.serve.query import FLAP_PARAMETERS, flap_query
from flapd.serve.written import unix_ns
from flapd.store.flap_query import FlapQuery

KNOWN = sorted(parameter.name for parameter in FLAP_PARAMETERS)
NOW = 1_700_000_000 * SECOND_NS


@pytest.mark.parametrize(
    ("written", "at"),
    [
        ("1700000000", NOW),
        ("1700000000.000000001", NOW + 1),
        ("0", 0),
        ("2h", NOW - 7200 * SECOND_NS),
        ("500ms", NOW - SECOND_NS // 2),
        ("36500d", 0),
        ("2023-11-14T22:13:20Z", NOW),
        ("2023-11-14T22:13:20.000001Z", NOW + 1000),
        ("2023-11-15T00:13:20+02:00", NOW),
    ],
)
def test_a_time_may_be_written_in_three_ways(written: str, at: int) -> None:
    assert unix_ns(written, NOW) == at


@given(st.datetimes(datetime(1970, 1, 1), datetime(9999, 12, 31)))  # noqa: DTZ001 - made aware below
def test_what_the_api_tells_as_a_time_it_takes_as_one(moment: datetime) -> None:
    since_epoch = moment.replace(tzinfo=timezone.utc) - datetime(1970, 1, 1, tzinfo=timezone.utc)
    at = since_epoch // timedelta(microseconds=1) * 1000

    assert unix_ns(rfc3339(at), NOW) == at


RFC3339 = st.builds(
    lambda moment, offset, fraction, zone: (
        moment.replace(tzinfo=zone(offset)).isoformat().replace("+00:00", "Z") + fraction
    ),
    st.datetimes(datetime(1970, 1, 3), datetime(9999, 12, 29)),  # noqa: DTZ001 - made aware
    st.integers(-23 * 60, 23 * 60),
    st.just(""),
    st.just(lambda minutes: timezone(timedelta(minutes=minutes))),
)
SPANS = st.from_regex(r"[0-9]{1,7}(\.[0-9]{1,9})?(ms|s|m|h|d)?", fullmatch=True)


@given(RFC3339 | SPANS | st.text(alphabet="0123456789:.-+TtZz smhd\u0661"))
def test_what_is_accepted_is_what_the_description_says(raw: str) -> None:
    for parameter in (instant("since"), span("min_down"), span("for", longest="24h")):
        try:
            parameter.parse(raw, NOW)
        except ValueError:
            continue
        assert re.fullmatch(parameter.schema["pattern"], raw)


@given(RFC3339)
def test_any_day_of_any_zone_is_a_time(raw: str) -> None:
    assert unix_ns(raw, NOW) >= 0


@pytest.mark.parametrize(
    "raw", ["2026-11-30T03:12:07Z", "2026-10-31t03:12:07.5z", "2024-02-29T23:59:59+14:00"]
)
def test_the_description_takes_the_times_that_the_answers_name(raw: str) -> None:
    assert re.fullmatch(instant("since").schema["pattern"], raw)
    assert unix_ns(raw, NOW)


@pytest.mark.parametrize("raw", ["500ms", "600", "1.5", "15m", "2h"])
def test_the_description_takes_the_spans_that_the_faults_name(raw: str) -> None:
    assert re.fullmatch(span("step", shortest="1ms", longest="24h").schema["pattern"], raw)


@given(st.lists(st.tuples(st.sampled_from(KNOWN), st.text() | st.from_regex(r"[-0-9.]+"))))
def test_any_query_string_is_a_query_or_a_fault_that_names_its_parameter(
    pairs: list[tuple[str, str]],
) -> None:
    found = query_or_fault(pairs)

    if isinstance(found, ApiError):
        assert found.code == "bad_parameter"
        assert found.parameter in KNOWN
    else:
        assert 1 <= found.limit <= 1000


def query_or_fault(pairs: list[tuple[str, str]]) -> FlapQuery | ApiError:
    try:
        return flap_query(read_parameters(FLAP_PARAMETERS, pairs, NOW))
    except ApiError as error:
        return error


def test_nothing_asked_for_is_everything_in_pages_of_a_hundred() -> None:
    assert query_or_fault([]) == FlapQuery(limit=100)
