"""How a port is told: nothing invented, each kind of not knowing by its name."""

from typing import Any

import pytest

from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.model.times import SECOND_NS
from flapd.serve.items import Module, PortItem, Witness
from flapd.serve.names import named_ports, physical_state_text, state_text
from flapd.serve.told import port_item
from tests.serve.parts import port, view

NOW = 1000 * SECOND_NS


def told(**changes: Any) -> PortItem:
    return port_item(view(**changes), now_ns=NOW, flaps_24h=None)


def test_what_was_never_read_is_null() -> None:
    item = told(values={}, errors={}, up=None, last_read_ns=None, readable=False)

    assert (item.state, item.phys_state, item.rate_gbps, item.width) == (None,) * 4
    assert (item.up, item.stale_seconds, item.last_down) == (None,) * 3
    assert item.counters == {}


def test_only_counters_are_told_as_counters() -> None:
    item = told(
        values={
            "state": 4,
            "net/carrier": 1,
            "net/carrier_down_count": 2,
            "hw_counters/lifespan": 12,
            "hw_counters/x": 0,
        },
        errors={"rate": "EINVAL", "counters/link_downed": "EINVAL"},
    )

    assert item.counters == {"carrier_down_count": 2, "x": 0, "link_downed": None}


def test_a_name_of_two_directories_tells_which_of_them() -> None:
    item = told(
        values={"hw_counters/link_downed": 8, "counters/symbol_error": 1},
        errors={"counters/link_downed": "EINVAL"},
        saturated=("hw_counters/link_downed",),
    )

    assert item.counters == {
        "hw_counters/link_downed": 8,
        "symbol_error": 1,
        "link_downed": None,
    }
    assert item.saturated == ["hw_counters/link_downed"]


@pytest.mark.parametrize(
    ("changes", "stuck_since_ns", "sysfs"),
    [
        ({}, None, "on"),
        ({"errors": {"counters/port_rcv_errors": "EINVAL"}}, None, "on"),
        ({}, NOW - 65 * SECOND_NS, "the reader of mlx5_0 waits in one read for 65 s"),
        ({"present": False}, NOW, "the reader of mlx5_0 waits in one read for 0 s"),
        ({"present": False}, None, "no longer found"),
        ({"readable": False, "errors": {}}, None, "not read yet"),
        (
            {"readable": False, "errors": {"counters/link_downed": "EIO", "state": "ENODEV"}},
            None,
            "cannot be read: link_downed EIO, state ENODEV",
        ),
    ],
)
def test_why_sysfs_does_not_work_is_told(
    changes: dict[str, Any], stuck_since_ns: int | None, sysfs: str
) -> None:
    item = port_item(view(**changes), now_ns=NOW, flaps_24h=None, stuck_since_ns=stuck_since_ns)

    assert item.sources == {"sysfs": sysfs}


def test_each_other_source_says_that_it_works_or_why_not() -> None:
    sources = {"rtnetlink": "on", "verbs": "off by configuration"}

    item = port_item(view(), now_ns=NOW, flaps_24h=None, sources=sources)

    assert item.sources == {"sysfs": "on", **sources}


def test_the_module_and_the_counter_that_counts_now_are_told() -> None:
    item = told(
        module=ModuleIdentity("Mellanox", "MCP4Y10", None),
        counter="ethtool/link_down_events_phy",
        witness_value=1003,
    )

    assert item.module == Module("Mellanox", "MCP4Y10", None)
    assert item.witness == Witness("link_down_events_phy", 1003, "live")


def test_a_port_whose_device_cannot_be_looked_at_says_so_unless_it_is_read() -> None:
    def sysfs(stuck_since_ns: int | None = None, **changes: Any) -> str:
        return port_item(
            view(**changes),
            now_ns=NOW,
            flaps_24h=None,
            stuck_since_ns=stuck_since_ns,
            is_blind=True,
        ).sources["sysfs"]

    assert sysfs(readable=False).startswith("its device cannot be looked at: ")
    assert sysfs(readable=False, present=False).startswith("its device cannot be looked at: ")
    assert sysfs(NOW, readable=False).startswith("the reader of mlx5_0 waits")
    assert sysfs() == "on"


def test_staleness_is_the_time_since_the_last_reading() -> None:
    assert told(last_read_ns=NOW - SECOND_NS // 2).stale_seconds == 0.5


@pytest.mark.parametrize(
    ("number", "state", "physical"),
    [
        (None, None, None),
        (0, "NOP", "UNKNOWN (0)"),
        (5, "ACTIVE_DEFER", "LinkUp"),
        (7, "UNKNOWN (7)", "Phy Test"),
        (-1, "UNKNOWN (-1)", "UNKNOWN (-1)"),
        (8, "UNKNOWN (8)", "UNKNOWN (8)"),
    ],
)
def test_states_are_written_as_the_kernel_writes_them(
    number: int | None, state: str | None, physical: str | None
) -> None:
    assert state_text(number) == state
    assert physical_state_text(number) == physical


def test_a_replaced_card_leaves_its_name_to_the_new_one() -> None:
    gone = view(port(key="old/1"), present=False)
    new = view(port(key="new/1"))

    for ports in ((gone, new), (new, gone)):
        assert named_ports(ports) == [new]
