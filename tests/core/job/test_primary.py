"""The first error of a job is primary; what follows from it is not."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.job.primary import judged
from flapd.model.fault import Fault
from flapd.model.times import SECOND_NS


def fault(kind: Any, at: float, **known: Any) -> Fault:
    name = f"{kind} {at} {known}"
    return Fault(
        id=name,
        kind=kind,
        form="",
        text="",
        time_ns=round(at * SECOND_NS),
        clock_error_ns=known.pop("error_ns", 0),
        **known,
    )


def primaries(*faults: Fault) -> list[str]:
    return [one.kind for one in judged(faults) if one.primary]


def timeout(at: float, rank: int, group: str | None = "default_pg", ran: float = 600.0) -> Fault:
    return fault(
        "watchdog_timeout", at, rank=rank, process_group=group, ran_seconds=ran, timeout_seconds=600
    )


def test_the_transport_error_comes_before_all_that_it_brings() -> None:
    assert primaries(
        fault("port_event", 970),
        fault("transport_error", 1000, host="node01", pid=1, status=12),
        fault("transport_error", 1000.2, host="node01", pid=1, status=5, consequence=True),
        fault("nccl_error", 1000.9, rank=3),
        fault("dump_signal", 1001, rank=3, consequence=True),
        fault("process_death", 1061, rank=3),
        fault("store_error", 1062, rank=9, consequence=True),
        fault("transport_error", 1091, host="node02", pid=1, status=12),
        timeout(1550, rank=17),
        fault("heartbeat", 2030, rank=17, timeout_seconds=480),
    ) == ["transport_error"]


def test_both_ends_of_a_link_may_be_the_first() -> None:
    found = primaries(
        fault("transport_error", 1000, host="node01", pid=1),
        fault("transport_error", 1000.4, host="node02", pid=7),
    )

    assert found == ["transport_error", "transport_error"]


def test_the_report_of_an_error_is_not_primary_even_if_its_clock_is_ahead() -> None:
    """NCCL's time is in whole seconds, or that of arrival."""
    found = primaries(
        fault("nccl_error", 1000.1, rank=3),
        fault("transport_error", 1000.9, host="node01", pid=1),
    )

    assert found == ["transport_error"]


def test_of_timeouts_in_one_group_the_first_is_primary() -> None:
    found = judged([timeout(1000.2, 1), timeout(1000.1, 0), timeout(1000.3, 2)])

    assert [one.rank for one in found if one.primary] == [0]


def test_a_timeout_of_what_was_enqueued_long_after_an_error_is_its_own() -> None:
    found = primaries(fault("transport_error", 1000, host="a"), timeout(9000, 0, ran=600))

    assert found == ["transport_error", "watchdog_timeout"]


def test_a_process_that_dies_by_itself_is_primary_and_what_follows_is_not() -> None:
    found = primaries(
        fault("process_death", 1000, rank=5, status=-9),
        fault("transport_error", 1031, host="node02", pid=3),
        fault("process_death", 1095, rank=9, status=-6),
        timeout(1590, 17),
    )

    assert found == ["process_death"]


def test_what_has_no_time_is_never_primary() -> None:
    (found,) = judged([replace(fault("nccl_error", 1), time_ns=None)])

    assert not found.primary


MANY = st.lists(
    st.builds(
        fault,
        st.sampled_from(
            ["transport_error", "nccl_error", "watchdog_timeout", "process_death", "heartbeat",
             "fatal_event", "store_error", "port_event"]
        ),
        st.integers(0, 40).map(lambda tenth: 1000 + tenth / 10),
        rank=st.integers(0, 3),
        error_ns=st.sampled_from([0, SECOND_NS]),
    ),
    unique_by=lambda one: one.id,
)  # fmt: skip


@given(MANY, st.randoms())
def test_the_order_of_arrival_changes_nothing(some: list[Fault], chance: Any) -> None:
    shuffled = list(some)
    chance.shuffle(shuffled)

    assert sorted(judged(shuffled), key=lambda one: one.id) == sorted(
        judged(some), key=lambda one: one.id
    )


@given(MANY)
def test_where_there_is_an_error_one_is_primary(some: list[Fault]) -> None:
    errors = [one for one in some if one.kind not in ("store_error", "port_event")]

    assert bool(primaries(*some)) == bool(errors)
