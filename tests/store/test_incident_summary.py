"""What incidents of a span cost, added up: as one would by hand."""

from contextlib import closing
from pathlib import Path

from flapd.model.event import Event
from flapd.model.loss import Range
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.incident_summary import IncidentTally
from tests.store.jobs import cause, incident
from tests.store.outages import outage, unix


def test_incidents_are_added_up_by_verdict_regime_and_port(tmp_path: Path) -> None:
    path = tmp_path / "history.sqlite"
    events: list[Event] = [
        outage("a"),
        incident("i1", gpu_seconds=Range(1, 2, 3), flap_gpu_seconds={"a": Range(1, 2, 3)}),
        incident(
            "i2",
            end=None,
            causes=(cause("a"), cause("b", port="mlx5_1/1")),
            gpu_seconds=Range(10, 20, 30),
            flap_gpu_seconds={"a": Range(4, 8, 12), "b": Range(6, 12, 18)},
        ),
        incident(
            "i3",
            verdict="elsewhere",
            regime=None,
            causes=(),
            gpu_seconds=None,
            flap_gpu_seconds={},
        ),
        incident("i4", supersedes=("i5",), verdict="likely", flap_gpu_seconds={}, gpu_seconds=None),
        incident("i5"),
        incident("too late", begin=101, end=110),
    ]
    with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
        history.commit(events, {})
        told = reader.incident_summary(unix(0), unix(100))
        nothing = reader.incident_summary(unix(-100), unix(-50))

    assert told.by_verdict == {
        "caused": IncidentTally(2, 0, Range(11, 22, 33)),
        "elsewhere": IncidentTally(1, 1, Range(0, 0, 0)),
        "likely": IncidentTally(1, 1, Range(0, 0, 0)),
    }
    assert told.by_regime == {"absorbed": IncidentTally(3, 1, Range(11, 22, 33))}
    assert told.by_port == {"mlx5_0/1": Range(5, 10, 15), "mlx5_1/1": Range(6, 12, 18)}
    assert (told.open, told.claimed, told.total.incidents) == (1, Range(11, 22, 33), 4)
    assert (nothing.by_verdict, nothing.total) == ({}, IncidentTally())
