"""Which lines the agent's log has about ports, and how loud they are."""

from collections.abc import MutableMapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from flapd.event_log import MOST_REMEMBERED, EventLog
from flapd.model.event import Event
from tests.serve.test_stream import flapping
from tests.store.outages import outage


def lines(*events: Event) -> list[MutableMapping[str, Any]]:
    with capture_logs() as logs:
        EventLog().tell(events)
    return logs


def said(*events: Event) -> list[tuple[str, str]]:
    return [(line["event"], line["log_level"]) for line in lines(*events)]


def test_a_down_is_a_warning_and_the_up_after_it_is_not() -> None:
    events = [outage("a", 1, up=None), outage("a", 2)]

    assert said(*events) == [("link_down", "warning"), ("link_up", "info")]


def test_a_line_says_when_where_and_why() -> None:
    down, up = lines(outage("a", 1, member="eth2"))

    assert down == {
        "event": "link_down",
        "log_level": "warning",
        "node": "node17",
        "device": "mlx5_0",
        "port": 1,
        "member": "eth2",
        "cause": "link",
        "down_earliest": "2023-11-14T22:13:30.000000Z",
        "down_latest": "2023-11-14T22:13:30.000000Z",
        "downs": 1,
        "downs_at_least": False,
        "seen": "observed",
        "kind": "flap",
        "id": "a",
        "revision": 1,
    }
    assert (up["up_latest"], up["down_seconds_max"]) == ("2023-11-14T22:13:32.000000Z", 2.0)


def test_a_down_that_nobody_saw_is_as_loud_as_one_that_was_seen() -> None:
    assert said(outage("a", seen="unseen")) == [("link_down", "warning"), ("link_up", "info")]


def test_each_down_of_a_burst_is_told_and_what_only_revises_is_not_another() -> None:
    events = [
        outage("a", 1, up=None),
        outage("a", 2),
        outage("b", 1, port="mlx5_1/1", up=None),
        outage("a", 3, count=2, up=None),
        outage("a", 4, count=2, up=15),
        outage("a", 5, count=2, up=15, settled=False),
    ]

    assert [name for name, _ in said(*events)] == [
        "link_down",
        "link_up",
        "link_down",
        "link_down",
        "link_up",
        "outage_revised",
    ]


def test_an_outage_whose_end_cannot_be_known_is_lost() -> None:
    events = [outage("a", 1, up=None), outage("a", 2, up=None, status="lost")]

    assert said(*events)[1] == ("link_lost", "info")


@pytest.mark.parametrize("cause", ["admin", "boot", "driver_reload", "removed", "maintenance"])
def test_what_people_and_reboots_do_is_no_warning(cause: str) -> None:
    assert said(outage("a", cause=cause)) == [("link_down", "info"), ("link_up", "info")]


@pytest.mark.parametrize(
    ("change", "level"),
    [("flapping", "warning"), ("gone", "warning"), ("calm", "info"), ("found", "info")],
)
def test_a_port_that_flaps_or_is_gone_is_a_warning(change: str, level: str) -> None:
    (line,) = lines(flapping(change=change))

    assert (line["event"], line["log_level"]) == (f"port_{change}", level)
    assert (line["device"], line["port"], line["note"]) == ("mlx5_0", 1, "penalty 2000")


def test_it_remembers_no_more_than_it_may() -> None:
    log = EventLog()
    with capture_logs():
        log.tell(outage(f"f{number}") for number in range(2 * MOST_REMEMBERED))

    assert len(log._told) == MOST_REMEMBERED
