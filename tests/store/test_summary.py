"""The summary: the same as adding up each outage."""

from collections import defaultdict
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS
from flapd.store.flap_query import FlapQuery, matches
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from flapd.store.summary import Summary, Tally
from tests.store.outages import outage, outages, unix


def summary_of(flaps: list[Outage], since: float, until: float) -> Summary:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "history.db"
        with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
            history.commit(flaps, {})
            return reader.summary(unix(since), unix(until))


MOMENTS = st.integers(-10, 1500)
HISTORIES = st.integers(0, 25).flatmap(
    lambda size: st.tuples(*(outages(f"id{number}") for number in range(size))).map(list)
)


@settings(deadline=None)
@given(HISTORIES, MOMENTS, MOMENTS)
def test_it_is_the_sum_of_the_outages_that_overlap_the_span(
    flaps: list[Outage], since: int, until: int
) -> None:
    span = FlapQuery(since_unix_ns=unix(since), until_unix_ns=unix(until))
    expected: dict[tuple[str, str], Tally] = defaultdict(Tally)
    for flap in flaps:
        if matches(span, flap):
            expected[flap.port, flap.cause] += Tally(
                1,
                flap.count,
                flap.down_ns_min or 0,
                flap.down_ns_max or 0,
                int(flap.down_ns_max is None),
            )

    summary = summary_of(flaps, since, until)

    assert expected == {
        (port, cause): tally
        for port, causes in summary.by_port.items()
        for cause, tally in causes.items()
    }
    counted = [tally for (_, cause), tally in expected.items() if cause in COUNTED_CAUSES]
    assert summary.total.outages == sum(tally.outages for tally in counted)
    assert sum(tally.downs for tally in summary.by_cause.values()) == sum(
        tally.downs for tally in expected.values()
    )


def test_the_worst_ports_are_those_that_went_down_most_by_the_fabric() -> None:
    flaps = [
        outage("a", port="mlx5_0/1", count=2),
        outage("b", port="mlx5_1/1", count=2, up=15),
        outage("c", port="mlx5_2/1", count=9, cause="admin"),
        outage("d", port="mlx5_3/1", count=3),
    ]

    worst = summary_of(flaps, 0, 100).worst_ports(2)

    assert [port for port, _tally in worst] == ["mlx5_3/1", "mlx5_1/1"]
    assert worst[1][1] == Tally(1, 2, 5 * SECOND_NS, 5 * SECOND_NS, 0)


def test_nothing_happened_is_an_empty_summary() -> None:
    summary = summary_of([], 0, 10)

    assert (summary.by_port, summary.by_cause, summary.total) == ({}, {}, Tally())
    assert summary.worst_ports(5) == []
