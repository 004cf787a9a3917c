"""Why traffic stands still, by what else is seen."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.job.stall.classify import Pause, Surroundings, classify, recurs
from flapd.model.times import SECOND_NS

OLD: dict[str, Any] = {"link_event": False, "job_age_ns": 10**13, "recurs": False}


@pytest.mark.parametrize(
    ("seen", "known", "expected"),
    [
        ({}, {"link_event": True}, "local_link"),
        ({"gpus_busy": True, "storage_busy": True}, {"link_event": True}, "local_link"),
        ({"processes": False}, {}, "job_end"),
        ({"planned": "checkpoint"}, {}, "checkpoint"),
        ({"planned": "evaluation"}, {}, "evaluation"),
        ({"storage_busy": True, "gpus_busy": False}, {}, "checkpoint"),
        ({"storage_busy": True}, {}, "checkpoint"),
        ({"storage_busy": True, "gpus_busy": True}, {}, "remote"),
        ({"retransmitting": True}, {}, "remote"),
        ({"gpus_busy": True}, {}, "remote"),
        ({"gpus_busy": False}, {}, "this_node"),
        ({"gpus_busy": False}, {"recurs": True}, "checkpoint"),
        ({"gpus_busy": False, "storage_busy": False}, {"recurs": True}, "this_node"),
        ({}, {"recurs": True}, "unknown"),
        ({}, {"job_age_ns": 10 * SECOND_NS}, "start_up"),
        ({"gpus_busy": True}, {"job_age_ns": 10 * SECOND_NS}, "remote"),
        ({}, {}, "unknown"),
    ],
)
def test_the_class_follows_from_what_is_seen(
    seen: dict[str, Any], known: dict[str, Any], expected: str
) -> None:
    kind, _ = classify(Surroundings(**seen), **(OLD | known))

    assert kind == expected


def test_what_could_not_be_seen_is_told() -> None:
    _, blind = classify(Surroundings(storage_busy=False), **OLD)

    assert blind == ("processes", "gpus_busy", "retransmitting")


@given(
    st.builds(Surroundings, *[st.sampled_from([None, False, True])] * 4),
    st.booleans(),
    st.integers(0, 10**13),
)
def test_only_a_link_event_makes_it_the_link(
    around: Surroundings, again: bool, age_ns: int
) -> None:
    kind, _ = classify(around, link_event=False, job_age_ns=age_ns, recurs=again)

    assert kind != "local_link"


def pauses(*each: tuple[float, float]) -> list[Pause]:
    return [Pause(round(at * SECOND_NS), round(length * SECOND_NS)) for at, length in each]


@pytest.mark.parametrize(
    ("earlier", "expected"),
    [
        ([(0, 20), (1800, 21), (3600, 19)], True),
        ([(0, 20), (1800, 21), (2000, 4), (3600, 19)], True),
        ([(0, 20), (1800, 21)], False),
        ([(0, 20), (900, 21), (3600, 19)], False),
        ([(0, 4), (1800, 4), (3600, 4)], False),
    ],
)
def test_a_pause_recurs_if_it_is_as_regular_and_long(
    earlier: list[tuple[float, float]], expected: bool
) -> None:
    (now,) = pauses((5400, 20))

    assert recurs(now, pauses(*earlier)) is expected
