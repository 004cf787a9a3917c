"""What hangs holds up nothing else; real threads, and items that hang until they are let go."""

import threading
import time
from collections.abc import Iterator

import pytest

from flapd.sources.follow.turns import MOST_HANGING, Turns

PATIENCE_SECONDS = 20.0
HANGS_NS = 50_000_000


class Counted:
    """Counts its turns; hangs in them for as long as it is told to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.due_ns = 0
        self.is_over = False
        self.turns = 0
        self.error: Exception | None = None
        self.may_go_on = threading.Event()
        self.may_go_on.set()
        self.has_turn = threading.Event()
        self.is_closed = threading.Event()

    def turn(self) -> None:
        self.turns += 1
        self.due_ns = time.monotonic_ns() + 1_000_000
        self.has_turn.set()
        self.may_go_on.wait(PATIENCE_SECONDS)
        if self.error is not None:
            raise self.error

    def close(self) -> None:
        self.is_closed.set()


class Told:
    """What the turns tell of failures."""

    def __init__(self) -> None:
        self.failures: dict[str, OSError] = {}
        self.gone: list[str] = []
        self.failed_once = threading.Event()

    def failed(self, name: str, error: OSError) -> None:
        self.failures[name] = error
        self.failed_once.set()

    def worked(self, name: str) -> None:
        self.failures.pop(name, None)


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def items() -> Iterator[list[Counted]]:
    made = [Counted(f"file {number}") for number in range(12)]
    yield made
    for item in made:
        item.may_go_on.set()
        item.is_over = True


def turns_of(told: Told) -> Turns:
    return Turns(told, lambda: None, lambda item: told.gone.append(item.name), HANGS_NS)


def go_on_until_turns(turns: Turns, item: Counted, number: int) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while item.turns < number:
        assert time.monotonic() < deadline, f"{item.name} had {item.turns} turns"
        turns.look()
        time.sleep(0.002)


def test_a_file_system_that_hangs_holds_up_no_other(told: Told, items: list[Counted]) -> None:
    turns = turns_of(told)
    hanging, other = items[:2]
    hanging.may_go_on.clear()
    turns.add(hanging, "0:44")
    assert hanging.has_turn.wait(PATIENCE_SECONDS)
    turns.add(other, "8:1")

    go_on_until_turns(turns, other, 20)

    assert hanging.turns == 1


def test_a_file_that_hangs_is_told_and_its_neighbours_go_on_without_it(
    told: Told, items: list[Counted]
) -> None:
    turns = turns_of(told)
    hanging, *others = items[:4]
    hanging.may_go_on.clear()
    for item in (hanging, *others):
        turns.add(item, "8:1")

    for other in others:
        go_on_until_turns(turns, other, 20)

    assert list(turns.hanging()) == [hanging.name]
    hanging.may_go_on.set()
    go_on_until_turns(turns, hanging, 5)
    assert turns.hanging() == {}


def test_where_many_files_of_a_file_system_hang_its_others_wait(
    told: Told, items: list[Counted]
) -> None:
    """Else each would take a thread with it."""
    turns = turns_of(told)
    for item in items:
        item.may_go_on.clear()
        turns.add(item, "0:44")
    deadline = time.monotonic() + PATIENCE_SECONDS
    while len(turns.hanging()) <= MOST_HANGING:
        assert time.monotonic() < deadline
        turns.look()
        time.sleep(0.01)
    for _ in range(20):
        turns.look()
        time.sleep(0.01)

    assert len(turns.hanging()) == MOST_HANGING + 1


def test_a_failure_is_told_until_it_is_over(told: Told, items: list[Counted]) -> None:
    turns = turns_of(told)
    item = items[0]
    item.error = OSError(5, "Input/output error")
    turns.add(item, "8:1")
    assert told.failed_once.wait(PATIENCE_SECONDS)
    item.error, item.due_ns = None, 0
    turns.add(items[1], "8:1")

    go_on_until_turns(turns, item, 3)

    assert told.failures == {}


def test_what_is_over_is_closed_and_told(told: Told, items: list[Counted]) -> None:
    turns = turns_of(told)
    items[0].is_over = True
    turns.add(items[0], "8:1")
    turns.add(items[1], "8:1")

    assert items[0].is_closed.wait(PATIENCE_SECONDS)
    go_on_until_turns(turns, items[1], 3)
    assert told.gone == [items[0].name]


def test_a_fault_of_ours_in_one_file_ends_that_one_alone(
    told: Told, items: list[Counted], capfd: pytest.CaptureFixture[str]
) -> None:
    turns = turns_of(told)
    items[0].error = RuntimeError("no such thing")
    for item in items[:2]:
        turns.add(item, "8:1")

    assert items[0].is_closed.wait(PATIENCE_SECONDS)
    go_on_until_turns(turns, items[1], 5)
    assert "no such thing" in capfd.readouterr().err
