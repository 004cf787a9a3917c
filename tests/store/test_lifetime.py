"""Lifetime: what expires is told by time that passed, never by what a wall clock says."""

import sqlite3
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.model.times import SECOND_NS
from flapd.store.lifetime import Expired, Now, elapsed_ns, expired, live_on
from flapd.store.schema import MIGRATIONS

HOUR_NS = 3_600 * SECOND_NS
DAY_NS = 24 * HOUR_NS
YEAR_NS = 365 * DAY_NS
TODAY_NS = 20_000 * DAY_NS


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    for migration in MIGRATIONS:
        connection.executescript(migration)
    yield connection
    connection.close()


def add_entry(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO journal VALUES (NULL, hex(randomblob(8)), 1, 'flap', '')")


def test_an_entry_expires_once_it_was_kept_for_so_long(connection: sqlite3.Connection) -> None:
    live_on(connection, Now("boot", 0, TODAY_NS))
    add_entry(connection)
    for hour in range(1, 50):
        live_on(connection, Now("boot", hour * HOUR_NS, TODAY_NS + hour * HOUR_NS))
    add_entry(connection)

    assert expired(connection, 49 * HOUR_NS) == Expired(0, 0)
    assert expired(connection, 48 * HOUR_NS) == Expired(1, 0)
    assert expired(connection, 0) == Expired(1, 0)


def test_nothing_is_expired_of_a_history_that_never_lived(connection: sqlite3.Connection) -> None:
    add_entry(connection)

    assert expired(connection, 0) == Expired(0, 0)


@given(st.integers(0, YEAR_NS), st.integers(-30 * YEAR_NS, 30 * YEAR_NS))
def test_within_a_boot_a_clock_that_is_set_changes_nothing(passed_ns: int, set_by_ns: int) -> None:
    then = Now("boot", 5, TODAY_NS)
    now = Now("boot", 5 + passed_ns, TODAY_NS + passed_ns + set_by_ns)

    assert elapsed_ns(then, now) == passed_ns


@given(st.integers(-30 * YEAR_NS, 30 * YEAR_NS))
def test_between_two_boots_at_most_a_day_has_passed_and_never_less_than_none(gap_ns: int) -> None:
    elapsed = elapsed_ns(Now("one", 10**15, TODAY_NS), Now("two", 5, TODAY_NS + gap_ns))

    assert 0 <= elapsed <= DAY_NS
    if 0 <= gap_ns <= DAY_NS:
        assert elapsed == gap_ns


def test_a_clock_set_a_year_ahead_expires_nothing(connection: sqlite3.Connection) -> None:
    live_on(connection, Now("boot", 0, TODAY_NS))
    add_entry(connection)
    live_on(connection, Now("boot", HOUR_NS, TODAY_NS + YEAR_NS))
    live_on(connection, Now("later", HOUR_NS, TODAY_NS + 2 * YEAR_NS))

    assert expired(connection, 2 * DAY_NS) == Expired(0, 0)


def test_a_clock_that_began_in_1970_keeps_nothing_for_longer(
    connection: sqlite3.Connection,
) -> None:
    live_on(connection, Now("boot", 0, 0))
    add_entry(connection)
    live_on(connection, Now("boot", HOUR_NS, TODAY_NS))
    live_on(connection, Now("boot", 3 * HOUR_NS, HOUR_NS))

    assert expired(connection, 2 * HOUR_NS) == Expired(1, 0)


def test_a_restart_within_a_boot_counts_the_time_between(connection: sqlite3.Connection) -> None:
    live_on(connection, Now("boot", 0, TODAY_NS))
    add_entry(connection)
    live_on(connection, Now("boot", HOUR_NS, TODAY_NS))
    live_on(connection, Now("boot", 40 * DAY_NS, TODAY_NS))

    assert expired(connection, 39 * DAY_NS) == Expired(1, 0)
