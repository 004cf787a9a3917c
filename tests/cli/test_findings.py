"""What is wrong now, by what an agent tells."""

from typing import Any

import pytest
from msgspec.structs import replace

from flapd.cli.answers import History, PortCounts, Sampler, Status
from flapd.cli.findings import AGENT, Finding, findings
from flapd.serve.items import Interval, PortItem, Witness, port_item
from tests.serve.parts import view

SINCE = "2026-11-30T03:12:07.000000Z"


def item(**changes: Any) -> PortItem:
    well = port_item(view(errors={}), now_ns=0, flaps_24h=2)
    return replace(well, **changes)


def status(**changes: Any) -> Status:
    well = Status(
        version="1",
        node="node17",
        uptime_seconds=1,
        boot="b",
        config="/etc/flapd/flapd.toml",
        config_ok=True,
        reasons=[],
        sources={"sysfs": True},
        sampler=Sampler(restarts=0),
        history=History("/var/lib/flapd/history.sqlite", 1, durable=True, events_not_durable=0),
        recording=None,
        ports=PortCounts(found=1, expected=1, watched=1, up=1),
        maintenance=[],
    )
    return replace(well, **changes)


def test_a_node_that_is_well_has_nothing_wrong() -> None:
    assert findings([item()], status(), []) == ([], [], [])


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
    (finding,) = findings([item(**changes)], None, []).wrong

    assert finding.about == "mlx5_0/1"
    assert finding.said.startswith(said)


@pytest.mark.parametrize(
    ("changes", "about", "said"),
    [
        ({"config_ok": False}, AGENT, "the configuration read last was refused"),
        (
            {"history": History("/h", None, durable=False, events_not_durable=7)},
            AGENT,
            "7 events are in memory only",
        ),
        ({"sampler": Sampler(0, stuck={"mlx5_3": 41.7})}, "mlx5_3", "its reader waits"),
        ({"sampler": Sampler(0, slowed={"mlx5_3": 4})}, "mlx5_3", "it is read 4 times"),
        ({"ports": PortCounts(1, 3, 1, 1)}, AGENT, "2 of 3 expected ports were never up here"),
        ({"observations_refused": 2}, AGENT, "2 observations"),
    ],
)
def test_each_thing_that_is_wrong_with_the_agent_is_told(
    changes: dict[str, Any], about: str, said: str
) -> None:
    (finding,) = findings([item()], status(**changes), []).wrong

    assert finding.about == about
    assert said in finding.said


def test_why_an_agent_is_not_ready_is_wrong() -> None:
    assert findings([], None, ["not yet"]).wrong == [Finding(AGENT, "not yet")]


def test_a_device_that_is_read_as_often_as_it_should_be_is_not_slow() -> None:
    assert findings([item()], status(sampler=Sampler(0, slowed={"mlx5_0": 1})), []).wrong == []


def test_what_is_planned_is_not_wrong() -> None:
    found = findings([item(up=False, maintenance=True)], None, [])

    assert found.wrong == []
    assert [finding.about for finding in found.planned] == ["mlx5_0/1"]


def test_a_port_that_was_never_up_is_only_listed() -> None:
    assert findings([item(watched=False, ever_up=False, up=False)], None, []).wrong == []


def test_a_port_whose_card_was_replaced_is_not_missing() -> None:
    old = item(watched=False, id="old")

    assert findings([old, item()], None, []).wrong == []


def test_what_cannot_be_seen_is_told_with_its_reason() -> None:
    found = findings([item(sources={"sysfs": "on", "verbs": "off: no permission"})], None, [])

    assert found.blind == [Finding("mlx5_0/1", "verbs: off: no permission")]
    assert found.wrong == []
