"""Nodes: silence is no health, and clocks are judged by what cannot be otherwise."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.fleet import Nodes
from flapd.model.fleet import ClockState
from flapd.model.times import SECOND_NS
from tests.core.fleet.fleets import beat
from tests.core.incident.parts import DAY, ns


def heard(*beats: tuple[float, float, float]) -> Nodes:
    """Each: when it was sent, by a clock so far ahead, and how long it was on its way."""
    nodes = Nodes()
    for at, ahead, delay in beats:
        nodes.beat(beat(0, at, ahead), ns(at + delay))
    return nodes


def test_a_node_that_fell_silent_is_unknown_whatever_it_said() -> None:
    nodes = heard((0.0, 0.0, 0.01))

    assert [one.health for one in nodes.view(ns(60.0))] == ["healthy"]
    silent = nodes.view(ns(91.0))[0]
    assert (silent.health, silent.reasons) == ("unknown", ("Nothing was heard for 90 s.",))


def test_a_node_is_shown_as_it_was_heard_last_whenever_somebody_looked() -> None:
    nodes = heard((0.0, 0.0, 0.01))
    shown = [nodes.view(ns(60.0))[0].health, nodes.view(ns(100.0))[0].health]
    ports = beat(0, 110.0).ports
    down = beat(0, 110.0, ports=(replace(ports[0], up=False), *ports[1:]))
    nodes.beat(down, ns(110.0))
    (last,) = nodes.view(ns(111.0))

    assert [*shown, last.health] == ["healthy", "unknown", "unhealthy"]
    assert (last.seen_unix_ns, last.heartbeat) == (ns(110.0), down)


def test_nodes_are_shown_in_order_of_their_names() -> None:
    nodes = Nodes()
    for name in ("node3", "node1", "node2", "node1"):
        nodes.note(name)

    assert [one.node for one in nodes.view(ns(0.0))] == ["node1", "node2", "node3"]


def test_a_node_that_only_told_events_is_unknown() -> None:
    nodes = Nodes()
    nodes.note("node9")

    assert [(one.node, one.health, one.seen_unix_ns) for one in nodes.view(ns(0.0))] == [
        ("node9", "unknown", None)
    ]


@pytest.mark.parametrize(
    ("change", "health", "reason"),
    [
        ({"up": False}, "unhealthy", "mlx5_0/1 is down."),
        ({"flapping": True}, "unhealthy", "mlx5_0/1 is flapping."),
        ({"readable": False}, "unhealthy", "mlx5_0/1 cannot be read."),
        ({"up": False, "maintenance": True}, "healthy", None),
        ({"up": False, "watched": False}, "healthy", None),
    ],
)
def test_what_a_node_says_of_its_ports_is_its_health(
    change: dict[str, bool], health: str, reason: str | None
) -> None:
    nodes, one = Nodes(), beat(0, 0.0)
    first, *others = one.ports
    nodes.beat(replace(one, ports=(replace(first, **change), *others)), ns(0.0))
    (shown,) = nodes.view(ns(1.0))

    assert (shown.health, shown.reasons) == (health, () if reason is None else (reason,))


AHEAD = st.floats(-30.0, 30.0)
DELAYS = st.lists(st.floats(0.001, 3.0), min_size=5, max_size=30)


@given(AHEAD, DELAYS)
def test_a_clock_is_ahead_by_no_less_than_a_heartbeat_proves(
    ahead: float, delays: list[float]
) -> None:
    nodes = heard(*((30.0 * n, ahead, delay) for n, delay in enumerate(delays)))
    clock = nodes.view(ns(0.0))[0].clock

    assert clock is not None
    assert clock.low <= ahead + 1e-6
    assert clock.low <= clock.likely <= clock.high


@given(AHEAD, st.lists(st.floats(0.001, 0.2), min_size=5, max_size=30))
def test_events_are_dated_as_well_as_correlation_needs(ahead: float, delays: list[float]) -> None:
    """Windows bear a second; the kernel's word counts within its own bound of half a second."""
    nodes = heard(*((30.0 * n, ahead, delay) for n, delay in enumerate(delays)))
    left = ahead - nodes.shift_ns("node0") / SECOND_NS

    assert abs(left) <= 0.25 + 0.5 + 1e-6


def test_a_clock_that_nobody_steers_is_taken_at_what_heartbeats_tell() -> None:
    nodes = Nodes()
    for at in (0.0, 30.0, 60.0):
        unsteered = replace(beat(0, at, 0.4), clock=ClockState(False, None, None, None))
        nodes.beat(unsteered, ns(at + 0.01))
    clock = nodes.view(ns(61.0))[0].clock

    assert clock is not None
    assert clock.likely == pytest.approx(0.39, abs=1e-6)


def test_what_was_told_before_a_clock_was_set_is_dated_by_what_it_was_then() -> None:
    nodes = heard(*((30.0 * n, 0.0, 0.01) for n in range(4)))
    offset_ns = ns(0.0) - round(DAY * SECOND_NS)

    assert nodes.shift_ns("node0", offset_ns) == 0
    assert nodes.shift_ns("node0", offset_ns + 7 * SECOND_NS) == 7 * SECOND_NS
    assert nodes.shift_ns("node0", offset_ns + 5000 * SECOND_NS) == 0


def test_a_clock_that_is_set_is_judged_anew() -> None:
    nodes = heard((0.0, 20.0, 0.01), (30.0, 20.0, 0.01), (60.0, 0.0, 0.01))
    clock = nodes.view(ns(61.0))[0].clock

    assert clock is not None
    assert clock.low == pytest.approx(-0.01, abs=1e-6)


def test_two_nodes_of_one_short_name_cannot_be_told_apart_by_it() -> None:
    nodes = Nodes()
    nodes.note("gpu1.east")
    assert nodes.named("gpu1") == "gpu1.east"
    nodes.note("gpu1.west")
    assert nodes.named("gpu1") is None
