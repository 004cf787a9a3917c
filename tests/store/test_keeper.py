"""The keeper beside the engine: with the real pump, and whatever the disk does."""

import threading
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.pump import Pump
from flapd.store.history import History, HistoryError
from flapd.store.history_reader import HistoryReader
from flapd.store.keeper import Keeper
from flapd.store.recorder import Recorder
from flapd.store.settings import HistorySettings
from tests.store.kept import AROUND_NS, kept
from tests.store.outages import outage
from tests.store.rings import BOOT, KEY, every, fill


@contextmanager
def pumping(directory: Path) -> Iterator[tuple[Pump, History]]:
    history = History(directory / "history.sqlite", AROUND_NS)
    engine = Engine("node7", FlapSettings(), history.checkpoint())
    pump = Pump(engine, history, Recorder(directory, "node7", "0.1.0"), BOOT)
    pump.start()
    yield pump, history
    assert pump.stop(10)


def test_with_a_pump_black_boxes_are_taken_while_it_runs(tmp_path: Path) -> None:
    path, ring = tmp_path / "history.sqlite", tmp_path / "ring"
    fill(ring, every(0.1, 50, 200), boot="boot-0")
    with pumping(tmp_path) as (pump, history):
        pump.call(lambda: history.commit([outage("a", down=105, up=107, boot="boot-0")], {}))
        keeper = Keeper(
            path,
            history,
            HistorySettings(),
            ring=ring,
            boot=BOOT,
            present=lambda: {KEY: "mlx5_0/1"},
            call=pump.call,
            look_seconds=0.01,
        )
        keeper.start()
        reader = HistoryReader(path)
        while (box := reader.black_box("a")) is None or box.pending:
            threading.Event().wait(0.01)
        keeper.stop(10)
        reader.close()

    assert len(box.rows) == 700


def test_while_nothing_can_be_written_it_waits_and_then_goes_on(tmp_path: Path) -> None:
    with kept(tmp_path) as whole:
        fill(whole.ring, every(0.1, 50, 200))
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.history._connection.execute("PRAGMA query_only = 1")
        with pytest.raises(Exception, match="readonly"):
            whole.look(200)
        assert whole.reader.black_box("a").pending  # type: ignore[union-attr]

        whole.history._connection.execute("PRAGMA query_only = 0")
        whole.look(200)
        box = whole.reader.black_box("a")
        assert box is not None
        assert (len(box.rows), box.pending) == (700, False)


def test_of_a_flap_soon_after_reading_began_nothing_is_gone(tmp_path: Path) -> None:
    with kept(tmp_path) as whole, capture_logs() as logs:
        fill(whole.ring, every(0.1, 103, 200))
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(200)
        box = whole.reader.black_box("a")

    assert box is not None
    assert (len(box.rows), box.pending, box.incomplete) == (370, False, False)
    assert logs == []


def test_samples_that_were_overwritten_are_told_by_the_name_of_their_port(tmp_path: Path) -> None:
    with kept(tmp_path) as whole, capture_logs() as logs:
        fill(whole.ring, every(0.1, 50, 1200))
        whole.history.commit([outage("a", down=105, up=107)], {})
        whole.look(1200)

    (told,) = logs
    assert (told["event"], told["ports"], told["slots"]) == ("samples_gone", ["mlx5_0/1"], 7)


def test_a_fault_of_ours_is_told_and_ends_nothing(tmp_path: Path) -> None:
    looked = threading.Semaphore(0)

    def present() -> dict[str, str]:
        looked.release()
        raise ValueError("mine")

    with kept(tmp_path, present=present) as whole, capture_logs() as logs:
        whole.keeper.start()
        for _ in range(3):
            looked.acquire()
        whole.keeper.stop(10)

    assert [log["event"] for log in logs][:2] == ["keeper_failed", "keeper_failed"]


def test_trouble_that_lasts_is_told_once(tmp_path: Path) -> None:
    looked = threading.Semaphore(0)

    def refuse(_step: object) -> "Future[object]":
        looked.release()
        refused: Future[object] = Future()
        refused.set_exception(HistoryError("the disk is full"))
        return refused

    with kept(tmp_path) as whole, capture_logs() as logs:
        keeper = Keeper(
            whole.path,
            whole.history,
            HistorySettings(),
            ring=whole.ring,
            boot=BOOT,
            present=lambda: None,
            call=refuse,
            look_seconds=0.001,
        )
        keeper.start()
        for _ in range(4):
            looked.acquire()
        keeper.stop(10)

    assert [log["event"] for log in logs] == ["history_upkeep_waits"]


def test_damage_ends_the_keeper_and_nothing_else(tmp_path: Path) -> None:
    with kept(tmp_path) as whole, capture_logs() as logs:
        whole.path.with_name("other.sqlite").write_bytes(b"no database" * 1000)
        keeper = Keeper(
            whole.path.with_name("other.sqlite"),
            whole.history,
            HistorySettings(),
            ring=whole.ring,
            boot=BOOT,
            present=lambda: None,
            call=whole.writer.submit,
            look_seconds=0.001,
        )
        keeper.start()
        keeper._thread.join()
        whole.history.commit([outage("a")], {})

    assert [log["event"] for log in logs] == ["black_boxes_end"]
