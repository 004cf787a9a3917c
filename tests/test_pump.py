import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from flapd import pump
from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    Observation,
    PortSeen,
    Sample,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.pump import EngineBusyError, Pump
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.recorder import Recorder

WITNESS = "counters/link_downed"
PORT = Port("guid-a/1", "mlx5_0", 1, "InfiniBand", witnesses=(WITNESS,))
BOTH = READ_WITNESS | READ_STATE


def sample(before_ns: int, reads: int = BOTH, **values: int) -> Sample:
    named = {WITNESS if name == "downs" else name: value for name, value in values.items()}
    return Sample(PORT.key, before_ns, before_ns + 5, reads, named)


UP: list[Observation] = [
    PortSeen(PORT, 0),
    sample(10, BOTH | READ_FIRST, downs=3, state=4, phys_state=5),
]
FLAP: list[Observation] = [sample(20, downs=4)]


class Bench:
    def __init__(self, directory: Path) -> None:
        self.path = directory / "history.sqlite"
        self.history = History(self.path)
        self.engine = Engine("node7", FlapSettings(), self.history.checkpoint())
        recorder = Recorder(directory, "node7", "0.1.0")
        self.pump = Pump(self.engine, self.history, recorder, "boot1")

    def counts(self) -> list[int]:
        with closing(HistoryReader(self.path)) as reader:
            return [outage.count for outage in reader.flaps(FlapQuery()).items]

    def refuse_writing(self, refuse: bool) -> None:
        """As a file system that became read-only."""
        pragma = f"PRAGMA query_only = {int(refuse)}"
        self.pump.call(lambda: self.history._connection.execute(pragma)).result(10)

    def end(self) -> None:
        assert self.pump.stop(10)
        self.history.close()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    bench = Bench(tmp_path)
    yield bench
    bench.history.close()


def test_what_was_put_is_in_the_history_once_a_later_call_has_run(bench: Bench) -> None:
    bench.pump.start()
    bench.pump.put(UP)
    bench.pump.put(FLAP)
    bench.pump.call(lambda: None).result(10)

    assert bench.counts() == [1]
    assert bench.pump.snapshot.ports[0].totals.downs["link"] == 1
    bench.end()


def test_what_was_observed_before_comes_first(bench: Bench) -> None:
    bench.pump.put([sample(20, downs=5)])
    bench.pump.start([*UP, sample(15, downs=4)])
    bench.end()

    assert bench.counts() == [2]
    assert bench.pump.snapshot.ports[0].witness_resets == 0


def test_ending_commits_a_checkpoint_from_which_the_next_goes_on(tmp_path: Path) -> None:
    first = Bench(tmp_path)
    first.pump.start(UP)
    first.end()

    second = Bench(tmp_path)
    second.pump.start(FLAP)
    second.end()

    assert second.counts() == [1]


def test_a_call_that_fails_fails_for_its_caller_alone(bench: Bench) -> None:
    bench.pump.start()

    def fail() -> None:
        raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        bench.pump.call(fail).result(10)
    assert not bench.pump.health.failed
    bench.end()


def test_an_observation_the_engine_cannot_take_is_told_and_the_next_is_taken(
    bench: Bench,
) -> None:
    bench.pump.start(UP)
    bench.pump.put(["not an observation", *FLAP])  # type: ignore[list-item]
    bench.end()

    assert bench.pump.health.observations_refused == 1
    assert bench.counts() == [1]


def test_a_port_is_in_the_checkpoint_as_soon_as_it_is_seen(bench: Bench) -> None:
    """Killed right after, the agent must know where to go on."""
    bench.pump.start(UP)
    bench.pump.call(lambda: None).result(10)

    record = Engine("node7", FlapSettings(), bench.history.checkpoint()).port(PORT.key)
    assert record is not None
    assert record.book.witness.value == 3
    bench.end()


def test_what_the_disk_does_not_take_is_shown_and_not_counted_until_it_does(bench: Bench) -> None:
    bench.pump.start(UP)
    bench.pump.call(lambda: None).result(10)
    bench.refuse_writing(True)
    bench.pump.put(FLAP)
    bench.pump.call(lambda: None).result(10)

    shown = bench.pump.snapshot
    assert [outage.count for outage in shown.undurable if isinstance(outage, Outage)] == [1]
    assert shown.ports[0].totals.downs["link"] == 0
    assert bench.pump.health.events_not_durable == 2
    assert bench.counts() == []

    bench.refuse_writing(False)
    bench.end()

    assert bench.counts() == [1]
    assert bench.pump.snapshot.undurable == ()
    assert bench.pump.snapshot.ports[0].totals.downs["link"] == 1


def test_events_that_memory_has_no_room_for_are_counted_and_told(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "MOST_UNCOMMITTED", 2)
    monkeypatch.setattr(pump, "RETRY_NS", 0)
    bench.pump.start(UP)
    bench.pump.ask(lambda: None, 10)
    bench.refuse_writing(True)
    with capture_logs() as logs:
        for downs in (4, 5, 6, 7):
            at_ns = downs * 1000 * SECOND_NS
            bench.pump.put([sample(at_ns, downs=downs), sample(at_ns + 10, state=4, phys_state=5)])
            bench.pump.ask(lambda: None, 10)

    dropped = [log["events"] for log in logs if log["event"] == "events_dropped"]
    assert bench.pump.health.events_dropped == sum(dropped) > 0
    assert bench.pump.health.events_not_durable == 2
    bench.refuse_writing(False)
    bench.end()


def test_what_is_asked_comes_after_the_observations_it_comes_with(bench: Bench) -> None:
    bench.pump.start(UP)

    snapshot = bench.pump.ask(bench.engine.snapshot, 10, FLAP)

    assert snapshot.ports[0].totals.downs["link"] == 1
    assert bench.counts() == [1]
    bench.end()


def test_an_engine_that_hangs_is_not_waited_for_and_does_nothing_of_it_later(
    bench: Bench,
) -> None:
    go_on = threading.Event()
    bench.pump.start(UP)
    bench.pump.call(go_on.wait)

    with pytest.raises(EngineBusyError, match=r"does not answer within 0\.01 s"):
        bench.pump.ask(bench.engine.snapshot, 0.01, FLAP)

    go_on.set()
    bench.end()
    assert bench.counts() == []


def test_a_queue_that_is_full_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "LONGEST_QUEUE", 1)
    bench = Bench(tmp_path)
    go_on = threading.Event()
    bench.pump.start(UP)
    bench.pump.call(go_on.wait)
    bench.pump.put([])

    with pytest.raises(EngineBusyError):
        bench.pump.ask(bench.engine.snapshot, 0.01)
    assert not bench.pump.stop(0.01)

    go_on.set()
    bench.end()
