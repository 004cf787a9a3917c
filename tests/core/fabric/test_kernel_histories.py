"""Anything the kernel's sources might tell between anything that might be read: what must hold."""

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from flapd.core.engine import Engine
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_RATE,
    READ_STATE,
    READ_STATISTICS,
    READ_WITNESS,
    ClockPair,
    KernelHint,
    KernelLine,
    KernelLineAbout,
    LinkHint,
    LinkReason,
    ModuleSeen,
    Observation,
    PortSeen,
    PortsPresent,
    Sample,
    Tick,
)
from flapd.model.port import Port
from tests.core.histories import (
    MS,
    SETTINGS,
    assert_a_restart_changes_no_event,
    assert_revisions_rise_and_end_with_the_end,
    run,
)

DOWNS, UPS, CARRIER = "net/carrier_down_count", "net/carrier_up_count", "net/carrier"
LINK_DOWNED, PHY = "counters/link_downed", "ethtool/link_down_events_phy"
IB = Port("a/1", "mlx5_0", 1, "InfiniBand", pci="p0", netdev="ib0", witnesses=(LINK_DOWNED,))
ROCE = Port("b/1", "mlx5_1", 1, "Ethernet", pci="p1", netdev="eth0", witnesses=(DOWNS,))
PORTS = (IB, ROCE)
READS = (
    READ_WITNESS,
    READ_WITNESS | READ_STATE,
    READ_WITNESS | READ_CARRIER,
    READ_STATE | READ_RATE,
    READ_WITNESS | READ_STATISTICS,
    READ_FIRST | READ_WITNESS | READ_STATE | READ_CARRIER | READ_STATISTICS,
)
VALUES = {
    DOWNS: st.integers(0, 4),
    UPS: st.integers(0, 5),
    CARRIER: st.integers(0, 1),
    "net/flags": st.sampled_from([0x1002, 0x1003, 0x1003]),
    LINK_DOWNED: st.integers(251, 255),
    PHY: st.integers(0, 6),
    "state": st.sampled_from([1, 4, 4]),
    "phys_state": st.sampled_from([2, 5, 5]),
    "rate_mbps": st.sampled_from([200_000, 400_000]),
}
ERRORS: tuple[dict[str, str], ...] = ({}, {}, {}, {PHY: "EIO"}, {DOWNS: "ENODEV"})


def a_sample(draw: st.DrawFn, now_ns: int) -> Observation:
    errors = draw(st.sampled_from(ERRORS))
    read = draw(st.fixed_dictionaries({}, optional=VALUES))
    values = {name: value for name, value in read.items() if name not in errors}
    began_ns = max(0, now_ns - draw(st.sampled_from([0, 0, 0, 150])) * MS)
    key = draw(st.sampled_from(PORTS)).key
    return Sample(key, began_ns, began_ns + 2 * MS, draw(st.sampled_from(READS)), values, errors)


def a_hint(draw: st.DrawFn, now_ns: int) -> Observation:
    received_ns = max(1, now_ns - draw(st.sampled_from([0, 0, 40, 400])) * MS)
    asked = draw(st.booleans())
    return LinkHint(
        netdev=draw(st.sampled_from(["eth0", "eth0", "ib0", "eth9"])),
        index=draw(st.sampled_from([7, 7, 7, 8])),
        present=draw(st.sampled_from([True, True, True, False])),
        carrier_downs=draw(st.one_of(st.none(), st.integers(0, 4))),
        carrier_ups=draw(st.integers(0, 5)),
        carrier=None,
        operstate=None,
        flags=draw(st.sampled_from([0x1002, 0x1003, 0x1003])),
        asked_ns=max(0, received_ns - MS) if asked else None,
        monotonic_ns=received_ns,
    )


def a_line(draw: st.DrawFn, now_ns: int) -> Observation:
    abouts: tuple[KernelLineAbout, ...] = ("link_down", "module", "link_up")
    about = draw(st.sampled_from(abouts))
    reason = draw(st.sampled_from([None, "Cable unplugged", "High Temperature"]))
    return KernelHint(KernelLine(about, reason, "p0"), max(0, now_ns - 50 * MS), now_ns)


def a_reason(draw: st.DrawFn, now_ns: int) -> Observation:
    key = draw(st.sampled_from(PORTS)).key
    return LinkReason(key, draw(st.sampled_from(["No cable", "Bad"])), now_ns, now_ns, "ethtool")


def a_change_of_ports(draw: st.DrawFn, now_ns: int) -> Observation:
    port = draw(st.sampled_from(PORTS))
    changes: list[Observation] = [
        PortSeen(port, now_ns),
        PortsPresent((port.key,), (), now_ns),
        ModuleSeen(port.key, "Mellanox", None, "MT1", now_ns),
        ClockPair(now_ns, 10**18 + now_ns, f"boot{now_ns % 2}"),
        Tick(now_ns),
    ]
    return draw(st.sampled_from(changes))


MAKES: tuple[Callable[[st.DrawFn, int], Observation], ...] = (
    *[a_sample] * 6,
    *[a_hint] * 5,
    a_line,
    a_reason,
    a_change_of_ports,
)


@st.composite
def histories(draw: st.DrawFn) -> list[Observation]:
    told: list[Observation] = [ClockPair(0, 10**15, "boot1")]
    told += [PortSeen(port, 0) for port in PORTS]
    first = {DOWNS: 0, UPS: 1, CARRIER: 1, LINK_DOWNED: 251, PHY: 0, "state": 4}
    told += [Sample(port.key, 0, MS, READS[-1], first) for port in PORTS]
    told.append(LinkHint("eth0", 7, True, 0, 1, None, None, 0x1003, 2 * MS, 3 * MS))
    now_ms = 4
    for _ in range(draw(st.integers(0, 40))):
        now_ms += draw(st.sampled_from([1, 50, 300, 4_000]))
        told.append(draw(st.sampled_from(MAKES))(draw, now_ms * MS))
    return told


@given(histories(), st.data())
def test_a_restart_at_any_moment_changes_no_event(
    observations: list[Observation], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(observations)), label="restart before")

    assert_a_restart_changes_no_event(observations, cut)


@given(histories())
def test_revisions_rise_one_by_one_and_each_interval_is_in_order(
    observations: list[Observation],
) -> None:
    assert_revisions_rise_and_end_with_the_end(observations)


@given(histories())
def test_what_is_said_in_words_changes_no_count_and_no_edge(
    observations: list[Observation],
) -> None:
    words: tuple[type[Any], ...] = (KernelHint, LinkReason, ModuleSeen)
    silent = [one for one in observations if not isinstance(one, words)]

    assert bare(observations) == bare(silent)


def bare(observations: list[Observation]) -> list[object]:
    """Each outage as it stands in the end, without what was said of it."""
    told = run(Engine("node7", SETTINGS), observations)
    outages = {event.id: event for event in told if isinstance(event, Outage)}
    return [
        (one.id, one.down, one.up, one.count, one.status, one.cause, one.kind)
        for one in outages.values()
    ]
