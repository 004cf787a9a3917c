"""Where a job stands, from the dumps of its ranks."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.job.dump import Dump, dump_of, standings, timeouts_seconds
from flapd.model.errors import FlapdError

START = 1_796_000_000_000_000_000


def entry(seq: int, state: str = "completed", **more: Any) -> dict[str, Any]:
    """As PyTorch 2.9 writes it."""
    return {
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": "nccl:all_reduce",
        "time_created_ns": START + seq,
        "input_sizes": [[4]],
        "state": state,
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": START + seq + 5 if state == "completed" else None,
        "retired": state == "completed",
        "timeout_ms": 600000,
        "is_p2p": False,
    } | more


def content(*entries: dict[str, Any], ranks: str = "[0, 1, 2]") -> dict[str, Any]:
    return {
        "version": "2.10",
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
        "pg_status": {
            "0": {
                "last_enqueued_collective": 7,
                "last_started_collective": 7,
                "last_completed_collective": 6,
            }
        },
        "entries": list(entries),
    }


def dump(*entries: dict[str, Any], **more: Any) -> Dump:
    return dump_of(content(*entries, **more))


def test_the_first_collective_that_is_not_complete_is_found_with_who_is_missing() -> None:
    (found,) = standings(
        [
            (0, dump(entry(6), entry(7, "started"), entry(8, "scheduled"))),
            (1, dump(entry(6), entry(7, "scheduled", time_created_ns=START))),
            (2, dump(entry(5), entry(6))),
        ]
    )

    assert (found.seq, found.op, found.group, found.description) == (
        7,
        "all_reduce",
        "0",
        "default_pg",
    )
    assert found.created_ns == START
    assert found.timeout_seconds == 600.0
    assert found.states == {0: "started", 1: "scheduled"}
    assert found.missing == found.lagging == (2,)
    assert found.silent == ()


def test_ranks_without_a_dump_are_silent_not_missing() -> None:
    (found,) = standings([(0, dump(entry(7, "started"), ranks="[0, 1, 2, 3]"))])

    assert found.missing == ()
    assert found.silent == (1, 2, 3)
    assert found.lagging == ()


def test_where_all_joined_those_that_completed_least_lag() -> None:
    (found,) = standings(
        [
            (0, dump(entry(6), entry(7))),
            (1, dump(entry(6), entry(7, "started"))),
            (2, dump(entry(6), entry(7))),
        ]
    )

    assert found.lagging == (1,)
    assert found.states == {0: "completed", 1: "started", 2: "completed"}


def test_a_job_that_goes_on_stands_nowhere() -> None:
    assert standings([(0, dump(entry(6), entry(7))), (1, dump(entry(6), entry(7)))]) == []


def test_what_the_recorder_has_overwritten_is_not_missing() -> None:
    (found,) = standings([(0, dump(entry(7, "started"))), (1, dump(entry(900), entry(901)))])

    assert found.missing == ()


def test_json_with_zeros_and_strings_says_the_same() -> None:
    written = content(entry(7, "started", time_discovered_completed_ns=0, process_group=["0", "x"]))
    written["pg_status"]["0"] = dict.fromkeys(written["pg_status"]["0"], "7")

    (found,) = standings([(0, dump_of(written))])

    assert (found.seq, found.description) == (7, "x")


def test_the_first_version_was_a_list() -> None:
    old = {**entry(7, "started"), "seq_id": 7}
    del old["collective_seq_id"]

    (found,) = standings([(0, dump_of([old]))])

    assert found.seq == 7
    assert found.ranks == ()


def test_gloo_retires_what_is_done() -> None:
    done = entry(7, "scheduled", retired=True, profiling_name="gloo:all_reduce")

    assert standings([(0, dump(done))]) == []


def test_point_to_point_is_not_a_collective() -> None:
    assert standings([(0, dump(entry(7, "started", is_p2p=True)))]) == []


def test_timeouts_are_told_once() -> None:
    assert timeouts_seconds(dump(entry(1), entry(2), entry(3, timeout_ms=1000))) == (1.0, 600.0)


@pytest.mark.parametrize("wrong", [None, 3, {}, {"entries": 3}, {"entries": [3]}, [["x"]]])
def test_what_is_no_dump_is_told(wrong: Any) -> None:
    with pytest.raises(FlapdError, match="no flight recorder's dump"):
        dump_of(wrong)


PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(PLAIN, st.dictionaries(st.sampled_from(sorted(entry(1))), PLAIN, max_size=4))
def test_any_content_is_a_dump_or_told(top: Any, changed: dict[str, Any]) -> None:
    for attempt in (top, content({**entry(1), **changed})):
        try:
            standings([(0, dump_of(attempt))])
        except FlapdError:
            continue
