"""Questions for outages: the same answer as looking at each one, in pages of any size."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.model.errors import FlapdError
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS
from flapd.store.cursor import decode_cursor, encode_cursor
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History
from flapd.store.history_reader import HistoryReader
from tests.store.outages import edge, outage, outages, unix


@contextmanager
def holding(events: list[Outage]) -> Iterator[HistoryReader]:
    with TemporaryDirectory() as directory:
        path = Path(directory) / "history.db"
        with closing(History(path)) as history, closing(HistoryReader(path)) as reader:
            history.commit(events, {})
            yield reader


def ids(reader: HistoryReader, query: FlapQuery) -> list[str]:
    return [flap.id for flap in reader.flaps(query).items]


def all_pages(reader: HistoryReader, query: FlapQuery) -> list[Outage]:
    items: list[Outage] = []
    while True:
        page = reader.flaps(query)
        assert len(page.items) <= query.limit
        items += page.items
        if page.next is None:
            return items
        assert len(page.items) == query.limit
        query = msgspec.structs.replace(query, cursor=page.next)


def is_wanted(flap: Outage, query: FlapQuery) -> bool:
    """The filters, said a second time and as plainly as can be."""
    if flap.up is not None:
        end = max(flap.up.latest_unix_ns, flap.down.latest_unix_ns)
    elif flap.status == "lost":
        end = max(flap.down.latest_ns, flap.recorded_ns) + flap.down.wall_offset_ns
    else:
        end = 2**63
    longest = flap.down_ns_max
    return (
        (query.since_unix_ns is None or end >= query.since_unix_ns)
        and (query.until_unix_ns is None or flap.down.earliest_unix_ns <= query.until_unix_ns)
        and (query.min_down_ns is None or longest is None or longest >= query.min_down_ns)
        and all(
            getattr(query, name) in (None, getattr(flap, name))
            for name in ("port", "guid", "kind", "status", "cause", "layer", "seen")
        )
    )


def maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


MOMENTS = st.integers(-10, 1500).map(unix)
QUERIES = st.builds(
    FlapQuery,
    since_unix_ns=maybe(MOMENTS),
    until_unix_ns=maybe(MOMENTS),
    port=maybe(st.sampled_from(["mlx5_0/1", "mlx5_1/1", "absent"])),
    guid=maybe(st.sampled_from(["0x1", "0x2"])),
    kind=maybe(st.sampled_from(["flap", "drop"])),
    status=maybe(st.sampled_from(["open", "closed", "lost"])),
    cause=maybe(st.sampled_from(["link", "subnet"])),
    layer=maybe(st.sampled_from(["physical", "logical"])),
    seen=maybe(st.sampled_from(["observed", "unseen"])),
    min_down_ns=maybe(st.sampled_from([0, 1, SECOND_NS, SECOND_NS + 1, 300 * SECOND_NS])),
    limit=st.integers(1, 7),
)
HISTORIES = st.integers(0, 25).flatmap(
    lambda size: st.tuples(*(outages(f"id{number}") for number in range(size)))
)


@settings(deadline=None)
@given(HISTORIES, st.lists(QUERIES, min_size=1, max_size=5))
def test_pages_of_any_size_give_what_the_filters_say_newest_first(
    flaps: tuple[Outage, ...], queries: list[FlapQuery]
) -> None:
    with holding(list(flaps)) as reader:
        for query in queries:
            wanted = [flap for flap in flaps if is_wanted(flap, query)]
            wanted.sort(key=lambda flap: (flap.down.earliest_unix_ns, flap.id), reverse=True)
            assert all_pages(reader, query) == wanted


def test_a_span_selects_what_overlaps_it_borders_included() -> None:
    with holding([outage("a", down=10, up=12)]) as reader:
        spans = {
            (5, 9.9): [],
            (5, 10): ["a"],
            (11, 11): ["a"],
            (12, 20): ["a"],
            (12.1, 20): [],
        }
        for (since, until), wanted in spans.items():
            query = FlapQuery(since_unix_ns=unix(since), until_unix_ns=unix(until))
            assert ids(reader, query) == wanted


def test_what_is_open_overlaps_every_later_span() -> None:
    with holding([outage("a", up=None)]) as reader:
        assert ids(reader, FlapQuery(since_unix_ns=unix(10**9))) == ["a"]


def test_what_was_lost_ends_when_it_was_told_lost() -> None:
    lost = outage("a", up=None, status="lost", recorded_ns=20 * SECOND_NS)
    with holding([lost]) as reader:
        assert ids(reader, FlapQuery(since_unix_ns=unix(20))) == ["a"]
        assert ids(reader, FlapQuery(since_unix_ns=unix(21))) == []


def test_a_clock_set_during_an_outage_hides_it_from_no_span() -> None:
    up = msgspec.structs.replace(edge(12), wall_offset_ns=unix(3600))
    with holding([msgspec.structs.replace(outage("a"), up=up)]) as reader:
        assert ids(reader, FlapQuery(since_unix_ns=unix(3000))) == ["a"]


def test_times_beyond_what_the_database_holds_are_no_error() -> None:
    with holding([outage("a")]) as reader:
        query = FlapQuery(since_unix_ns=-(2**80), until_unix_ns=2**80, min_down_ns=1)
        assert ids(reader, query) == ["a"]


def test_a_flap_that_changes_its_class_is_found_in_the_new_one_only() -> None:
    events = [outage("a", 1, up=None), outage("a", 2, up=500, kind="drop")]
    with holding(events) as reader:
        assert ids(reader, FlapQuery(status="open")) == []
        assert ids(reader, FlapQuery(status="closed", kind="drop")) == ["a"]


@settings(deadline=None)
@given(st.integers(-(2**63), 2**63 - 1), st.text(st.characters(codec="utf-8")))
def test_a_cursor_gives_back_its_position(down: int, flap_id: str) -> None:
    assert decode_cursor(encode_cursor((down, flap_id))) == (down, flap_id)


@pytest.mark.parametrize("cursor", ["", "x", "!!", "é", "bnVsbA", "WzEsMl0", "WzFd"])
def test_a_malformed_cursor_is_refused_by_name(cursor: str) -> None:
    with holding([]) as reader, pytest.raises(FlapdError, match=r"^cursor "):
        reader.flaps(FlapQuery(cursor=cursor))
