"""The outbox is the journal from a cursor on; what retention takes first is told as lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from flapd.fleet.outbox import Outbox
from flapd.model.event import Event
from tests.fleet.telling import Telling, telling
from tests.store.jobs import fault
from tests.store.outages import outage


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Telling]:
    with telling(tmp_path) as found:
        yield found


def ids(outbox: Outbox) -> list[str]:
    return [event.id for _, event in outbox.next(100)]


async def test_what_was_settled_does_not_come_again_after_a_restart(node: Telling) -> None:
    node.commit(outage("a"), outage("b"), outage("c"))
    outbox = node.outbox()

    await outbox.settle(2)

    assert ids(outbox) == ids(node.outbox()) == ["c"]
    assert node.outbox().waiting() == 1


async def test_what_was_not_settled_comes_again(node: Telling) -> None:
    node.commit(outage("a"))
    assert ids(node.outbox()) == ["a"]

    assert ids(node.outbox()) == ["a"]


async def test_a_cursor_that_the_disk_does_not_take_still_moves(node: Telling) -> None:
    """The disk is full: nothing is told twice as long as the agent lives."""
    node.commit(outage("a"), outage("b"))
    outbox = node.outbox()
    node.writer.submit(node.history._connection.execute, "PRAGMA query_only = ON").result()

    await outbox.settle(1)

    assert ids(outbox) == ["b"]
    assert ids(node.outbox()) == ["a", "b"]


async def test_what_retention_took_before_it_was_told_is_counted(node: Telling) -> None:
    node.commit(*(outage(name) for name in "abcde"))
    outbox = node.outbox()
    await outbox.settle(1)
    forget(node, 4)

    assert ids(outbox) == ["e"]
    assert (outbox.lost, outbox.waiting()) == (3, 1)


async def test_all_may_be_lost(node: Telling) -> None:
    node.commit(outage("a"), outage("b"))
    outbox = node.outbox()
    await outbox.settle(1)
    forget(node, 2)

    assert (ids(outbox), outbox.lost, outbox.waiting()) == ([], 1, 0)


def test_what_was_gone_before_there_was_a_fleet_is_not_lost_to_it(node: Telling) -> None:
    node.commit(outage("a"), outage("b"))
    forget(node, 1)
    outbox = node.outbox()

    assert (ids(outbox), outbox.lost) == (["b"], 0)


def forget(node: Telling, up_to: int) -> None:
    statement = "DELETE FROM journal WHERE seq <= ?"
    node.writer.submit(node.history._connection.execute, statement, (up_to,)).result()


def test_of_faults_those_that_are_primary_are_for_the_fleet(node: Telling) -> None:
    told, not_told = fault("first", 1, primary=True), fault("second", 1)
    node.commit(told, not_told, outage())

    assert for_the_fleet(node) == [told, outage()]


def test_the_fleet_learns_that_what_was_primary_is_not_any_more(node: Telling) -> None:
    first = fault("fault", 1, primary=True)
    later, latest = (replace(first, revision=number, primary=False) for number in (2, 3))
    node.commit(first, later, latest)

    assert for_the_fleet(node) == [first, later, latest]


def test_a_fault_that_never_was_primary_stays_here_in_all_its_revisions(node: Telling) -> None:
    node.commit(*(fault("fault", number, repeats=number) for number in (1, 2, 3)))

    assert for_the_fleet(node) == []


def test_where_it_cannot_be_told_whether_a_fault_was_primary_it_is_for_the_fleet(
    node: Telling,
) -> None:
    node.commit(fault("fault", 1), fault("fault", 2))
    forget(node, 1)

    assert for_the_fleet(node) == [fault("fault", 2)]


def for_the_fleet(node: Telling) -> list[Event]:
    outbox = node.outbox()
    return [event for _, event in outbox.next(100) if outbox.is_for_the_fleet(event)]
