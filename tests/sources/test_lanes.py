"""Lanes with readers that hang, dawdle or fail as the test wants it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.lanes import SLOW_ALONE_NS, SLOW_NS, SLOW_TURNS, Lanes

PATIENCE_SECONDS = 10.0
TURN_EVERY_NS = 5 * MILLISECOND_NS


class FakeReader:
    """Says who gives it turns; one turn waits for as long as `hold` is held."""

    def __init__(self, device: str) -> None:
        self.device = device
        self.has_looked = False
        self.failed_ns: int | None = None
        self.next_turn_ns = 0
        self.every_ns = TURN_EVERY_NS
        self.threads: list[int] = []
        self.hold = threading.Event()
        self.hold.set()
        self.fails = False
        self.in_turn = threading.Event()
        self.closed = threading.Event()
        self.was_told_to_stop = False
        self._turns = threading.Semaphore(0)
        self._busy = threading.Lock()

    def turn(self) -> None:
        assert self._busy.acquire(blocking=False), "two threads at once"
        assert not self.closed.is_set(), "a turn after it was closed"
        self.in_turn.set()
        assert self.hold.wait(PATIENCE_SECONDS)
        self.threads.append(threading.get_ident())
        self.has_looked = True
        self.next_turn_ns = time.monotonic_ns() + self.every_ns
        self._busy.release()
        self._turns.release()
        if self.fails:
            raise ValueError("a fault of ours")

    def stop(self) -> None:
        self.was_told_to_stop = True

    def close(self) -> None:
        self.closed.set()

    def turns(self, count: int) -> None:
        """Waits for so many more."""
        for _ in range(count):
            assert self._turns.acquire(timeout=PATIENCE_SECONDS), f"{self.device} gets no turn"

    def hang(self) -> None:
        self.hold.clear()
        self.in_turn.clear()
        assert self.in_turn.wait(PATIENCE_SECONDS)


@pytest.fixture
def readers() -> Iterator[list[FakeReader]]:
    made = [FakeReader(f"mlx5_{number}") for number in range(4)]
    yield made
    for reader in made:
        reader.hold.set()


@contextmanager
def running(
    readers: list[FakeReader], *, slow_ns: int = SLOW_NS, slow_alone_ns: int = SLOW_ALONE_NS
) -> Iterator[Lanes]:
    lanes = Lanes(lambda: None, slow_ns=slow_ns, slow_alone_ns=slow_alone_ns)
    for reader in readers:
        lanes.add(reader)
    for reader in readers:
        reader.turns(2)
    yield lanes
    for reader in readers:
        lanes.remove(reader)


@pytest.fixture
def lanes(readers: list[FakeReader]) -> Iterator[Lanes]:
    """A busy machine must not make a turn slow here."""
    with running(readers, slow_ns=10**12) as lanes:
        yield lanes


def looked_at_until_others_go_on(lanes: Lanes, readers: list[FakeReader]) -> None:
    """As the sampler's main thread does it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    counts = [len(reader.threads) for reader in readers]
    while any(len(reader.threads) == count for reader, count in zip(readers, counts, strict=True)):
        assert time.monotonic() < deadline, "a reader gets no turn"
        lanes.look()
        time.sleep(0.01)


def test_quick_readers_share_one_thread(lanes: Lanes, readers: list[FakeReader]) -> None:
    lanes.look()
    for reader in readers:
        reader.turns(3)

    assert len({thread for reader in readers for thread in reader.threads}) == 1


def test_one_that_hangs_does_not_hold_up_the_others(
    lanes: Lanes, readers: list[FakeReader]
) -> None:
    readers[1].hang()
    others = [reader for reader in readers if reader is not readers[1]]

    looked_at_until_others_go_on(lanes, others)

    for reader in others:
        reader.turns(3)
    assert not readers[1].hold.is_set()


@pytest.mark.parametrize("is_alone", [False, True])
def test_a_reader_whose_next_turn_is_due_earlier_is_woken(
    lanes: Lanes, readers: list[FakeReader], is_alone: bool
) -> None:
    if is_alone:
        readers[0].hang()
        looked_at_until_others_go_on(lanes, readers[1:])
    for reader in readers[1:]:
        reader.every_ns = 3600 * SECOND_NS
    deadline = time.monotonic() + PATIENCE_SECONDS
    while readers[1].next_turn_ns < time.monotonic_ns() + SECOND_NS:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    turns = len(readers[1].threads)

    readers[1].next_turn_ns = 0
    lanes.wake(readers[1])

    while len(readers[1].threads) == turns:
        assert time.monotonic() < deadline, "it slept on"
        time.sleep(0.01)


def test_several_that_hang_together_are_found_at_once(
    lanes: Lanes, readers: list[FakeReader]
) -> None:
    """After the first, every reader has a thread of its own: no second rescue is needed."""
    readers[0].hang()
    readers[1].hold.clear()
    readers[2].hold.clear()

    looked_at_until_others_go_on(lanes, readers[3:])

    assert readers[1].in_turn.wait(PATIENCE_SECONDS)
    assert readers[2].in_turn.wait(PATIENCE_SECONDS)
    readers[3].turns(3)


def test_one_that_hung_goes_on_when_it_comes_back(lanes: Lanes, readers: list[FakeReader]) -> None:
    readers[1].hang()
    looked_at_until_others_go_on(lanes, readers[2:])
    readers[1].hold.set()

    readers[1].turns(3)


def test_after_calm_they_share_one_thread_again(readers: list[FakeReader]) -> None:
    with running(readers, slow_ns=10**12) as lanes:
        readers[1].hang()
        looked_at_until_others_go_on(lanes, [readers[0], *readers[2:]])
        readers[1].hold.set()

        readers[1].turns(1)
        deadline = time.monotonic() + 2 * PATIENCE_SECONDS
        while threads_in_use(readers) > 1:
            assert time.monotonic() < deadline, "they never share one again"
            readers[1].turns(1)


def test_those_that_are_slow_again_and_again_get_threads_of_their_own(
    readers: list[FakeReader],
) -> None:
    with running(readers, slow_ns=0):
        for reader in readers:
            reader.turns(SLOW_TURNS + 2)

        assert threads_in_use(readers) == len(readers)


DAWDLE_NS = 100 * MILLISECOND_NS
"""Longer than any turn takes here because the machine is busy."""


def dawdle(reader: FakeReader) -> None:
    reader.hang()
    time.sleep(1.2 * DAWDLE_NS / SECOND_NS)
    reader.hold.set()
    reader.turns(1)


def threads_in_use(readers: list[FakeReader]) -> int:
    return len({reader.threads[-1] for reader in readers})


def test_one_slow_turn_is_an_accident(readers: list[FakeReader]) -> None:
    with running(readers, slow_ns=DAWDLE_NS):
        dawdle(readers[0])
        for reader in readers:
            reader.turns(3)

        assert threads_in_use(readers) == 1


def test_what_was_slow_shares_a_thread_again_after_a_calm_while(
    readers: list[FakeReader],
) -> None:
    with running(readers, slow_ns=DAWDLE_NS, slow_alone_ns=SECOND_NS // 2):
        for _ in range(SLOW_TURNS):
            dawdle(readers[0])
        readers[0].turns(1)
        assert threads_in_use(readers) == 2

        deadline = time.monotonic() + PATIENCE_SECONDS
        while threads_in_use(readers) > 1:
            assert time.monotonic() < deadline, "they never share one again"
            readers[0].turns(1)


def test_one_that_is_removed_while_it_hangs_is_closed_by_its_own_thread(
    lanes: Lanes, readers: list[FakeReader]
) -> None:
    readers[1].hang()
    lanes.remove(readers[1])
    assert readers[1].was_told_to_stop
    assert not readers[1].closed.is_set()

    readers[1].hold.set()

    assert readers[1].closed.wait(PATIENCE_SECONDS)
    readers[0].turns(3)


def test_one_that_is_removed_between_turns_is_closed_at_once(
    lanes: Lanes, readers: list[FakeReader]
) -> None:
    readers[0].next_turn_ns = time.monotonic_ns() + 10**15
    readers[1].turns(2)
    lanes.remove(readers[0])

    assert readers[0].closed.is_set()


@pytest.mark.usefixtures("capfd")
def test_one_that_fails_ends_alone(lanes: Lanes, readers: list[FakeReader]) -> None:
    readers[2].fails = True

    assert readers[2].closed.wait(PATIENCE_SECONDS)
    assert readers[2].failed_ns is not None
    readers[3].turns(3)
    lanes.remove(readers[2])
