"""What is wrong now, by what an agent tells."""

from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from flapd.cli.answers import (
    Fleet,
    History,
    Interval,
    PortAnswer,
    PortCounts,
    PortsAnswer,
    Sampler,
    Status,
    Witness,
)
from flapd.cli.findings import AGENT, Finding, findings
from flapd.serve.told import port_item
from tests.serve.parts import view

SINCE = "2026-11-30T03:12:07.000000Z"


def item(**changes: Any) -> PortAnswer:
    told = msgspec.json.encode(port_item(view(errors={}), now_ns=0, flaps_24h=2))
    return replace(msgspec.json.decode(told, type=PortAnswer), **changes)


def listed(*items: PortAnswer, expected: int | None = None) -> PortsAnswer:
    return PortsAnswer([*items], expected)


def status(**changes: Any) -> Status:
    well = Status(
        version="1",
        node="node17",
        uptime_seconds=1,
        history=History("/var/lib/flapd/history.sqlite", durable=True),
        ports=PortCounts(expected=1),
    )
    return replace(well, **changes)


def test_a_node_that_is_well_has_nothing_wrong() -> None:
    assert findings(listed(item()), status(), []) == ([], [], [])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"up": False, "last_down": Interval(SINCE, SINCE)}, "down since 2026-11-30"),
        ({"up": False, "last_down": None}, "down"),
        ({"readable": False}, "cannot be read: whether it is up is not known"),
        ({"flapping": True, "penalty": 2400.4}, "flapping: penalty 2400, 2 flaps in 24 h"),
        ({"flapping": True, "flaps_24h": None}, "flapping: penalty 0, flaps not known"),
        (
            {"downgraded": True, "rate_gbps": 200.0, "expected_rate_gbps": 400.0},
            "slow: 200 Gb/s where 400 Gb/s are expected",
        ),
        ({"witness": Witness("link_downed", 255, "saturated")}, "link_downed stands at its stop"),
        ({"witness": Witness("link_downed", 3, "lying")}, "link_downed did not count a down"),
        ({"witness": Witness("link_downed", None, "unreadable")}, "link_downed cannot be read"),
        ({"watched": False}, "missing: it was up here once"),
    ],
)
def test_each_thing_that_is_wrong_with_a_port_is_told(changes: dict[str, Any], said: str) -> None:
    (finding,) = findings(listed(item(**changes)), None, []).wrong

    assert finding.about == "mlx5_0/1"
    assert finding.said.startswith(said)


@pytest.mark.parametrize(
    ("changes", "about", "said"),
    [
        ({"config_ok": False}, AGENT, "the configuration read last was refused"),
        (
            {"history": History("/h", durable=False, events_not_durable=7)},
            AGENT,
            "7 events are in memory only",
        ),
        (
            {"history": History("/h", durable=True, events_dropped=9)},
            AGENT,
            "9 events are lost to the history",
        ),
        ({"sampler": Sampler(0, stuck={"mlx5_3": 41.7})}, "mlx5_3", "its reader waits"),
        ({"sampler": Sampler(0, slowed={"mlx5_3": 4})}, "mlx5_3", "it is read 4 times"),
        (
            {"sampler": Sampler(0, rings_missing={"mlx5_3": 3})},
            "mlx5_3",
            "3 of its rings could not be made",
        ),
        ({"ports": PortCounts(3)}, AGENT, "2 of 3 expected ports were never up here"),
        ({"restart_needed": ["http", "log"]}, AGENT, "needs a restart: http, log"),
        ({"observations_refused": 2}, AGENT, "2 observations"),
        ({"fleet": Fleet(connected=False, reason="no route")}, AGENT, "not told: no route"),
        ({"fleet": Fleet(connected=True, events_lost=3)}, AGENT, "3 events"),
    ],
)
def test_each_thing_that_is_wrong_with_the_agent_is_told(
    changes: dict[str, Any], about: str, said: str
) -> None:
    (finding,) = findings(listed(item()), status(**changes), []).wrong

    assert finding.about == about
    assert said in finding.said


def test_why_an_agent_is_not_ready_is_wrong() -> None:
    assert findings(listed(), None, ["not yet"]).wrong == [Finding(AGENT, "not yet")]


def test_a_device_that_is_read_as_often_as_it_should_be_is_not_slow() -> None:
    assert (
        findings(listed(item()), status(sampler=Sampler(0, slowed={"mlx5_0": 1})), []).wrong == []
    )


def test_a_device_of_which_every_ring_was_made_is_not_wrong() -> None:
    made = status(sampler=Sampler(0, rings_missing={"mlx5_0": 0}))

    assert findings(listed(item()), made, []).wrong == []


def test_what_a_device_has_that_cannot_be_looked_at_is_not_called_never_up() -> None:
    assert findings(replace(listed(item(), expected=2), blind=["mlx5_1"]), None, []).wrong == []


def test_what_is_planned_is_not_wrong() -> None:
    found = findings(listed(item(up=False, maintenance=True)), None, [])

    assert found.wrong == []
    assert [finding.about for finding in found.planned] == ["mlx5_0/1"]


NEVER_UP = item(watched=False, ever_up=False, up=False)


def test_a_port_that_was_never_up_is_only_listed() -> None:
    assert findings(listed(item(), NEVER_UP), None, []).wrong == []


@pytest.mark.parametrize(
    ("ports", "said"),
    [
        (listed(NEVER_UP, NEVER_UP), "nothing is watched: 0 of 2 ports found were ever up here"),
        (listed(NEVER_UP, expected=0), "nothing is watched: 0 of 1 ports found were ever up here"),
        (listed(expected=0), "nothing is watched: there is no RDMA port, or none is to be watched"),
        (listed(NEVER_UP, expected=2), "2 of 2 expected ports were never up here"),
    ],
)
def test_a_node_of_which_nothing_was_ever_up_is_not_well(ports: PortsAnswer, said: str) -> None:
    assert findings(ports, None, []).wrong == [Finding(AGENT, said)]


def test_a_node_that_is_being_installed_is_not_wrong() -> None:
    found = findings(listed(replace(NEVER_UP, maintenance=True)), None, [])

    assert found.wrong == []
    assert [finding.about for finding in found.planned] == [AGENT]


def test_what_an_agent_expects_is_known_over_the_network_as_well() -> None:
    (finding,) = findings(listed(item(), expected=2), None, []).wrong

    assert finding.said == "1 of 2 expected ports were never up here"


def test_a_counter_at_its_stop_says_how_it_counts_again() -> None:
    stopped = item(witness=Witness("link_downed", 255, "saturated"))

    (finding,) = findings(listed(stopped), None, []).wrong

    assert "shorter than sampling.interval are missed" in finding.said
    assert "perfquery -R LID PORT 0x0fff" in finding.said


def test_a_port_whose_card_was_replaced_is_not_missing() -> None:
    old = item(watched=False, guid="old")

    assert findings(listed(old, item()), None, []).wrong == []


def test_what_cannot_be_seen_is_told_with_its_reason() -> None:
    found = findings(listed(item(sources={"sysfs": "on", "verbs": "off: no permission"})), None, [])

    assert found.blind == [Finding("mlx5_0/1", "verbs: off: no permission")]
    assert found.wrong == []


def test_what_no_port_can_be_seen_by_is_told_once_and_what_is_off_by_choice_never() -> None:
    off = {"sysfs": "on", "verbs": "off by configuration", "ethtool": "no ethtool here"}
    one, other = item(sources=off), item(port="mlx5_1/1", sources=off | {"rtnetlink": "no netdev"})

    found = findings(listed(one, other), None, [])

    assert found.blind == [
        Finding(AGENT, "ethtool: no ethtool here"),
        Finding("mlx5_1/1", "rtnetlink: no netdev"),
    ]
