"""Flaps of real links under rxe, with events and without: counted, dated, told from others."""

from collections.abc import Callable
from itertools import pairwise
from statistics import median

import pytest

from flapd.sources.settings import OFF
from tests.kernel.guest.bare import (
    CABLE_FLAPS,
    NETDEVS,
    QUICK_FLAPS,
    VETH_FLAPS,
)
from tests.kernel.image import missing
from tests.kernel.told import Watched, assert_each_is_found, link_downs, widths_ns

TOLD_BY_THE_KERNEL = ("rdma_netlink", "rtnetlink", "verbs", "kernel_log")
LARGEST_SHARE = 0.6
"""Of the width of an interval without events, that with them."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(missing() is not None, reason=f"no virtual machine: {missing()}"),
]


@pytest.mark.parametrize("device", NETDEVS)
def test_a_port_is_found_with_identity_netdev_and_witness(watched: Watched, device: str) -> None:
    truth = watched.scenario("found")[device]

    port = truth["port"][watched.name]
    assert (port["guid"], port["netdev"]) == (truth["node_guid"], truth["netdev"])
    assert (port["driver"], port["link_layer"], port["up"]) == ("rdma_rxe", "Ethernet", True)
    assert port["witness"]["name"] == "carrier_down_count"
    assert port["witness"]["value"] == truth["downs"]


@pytest.mark.parametrize(("device", "count"), [("rxe0", VETH_FLAPS), ("rxe1", CABLE_FLAPS)])
def test_every_flap_is_counted_and_lies_in_its_interval(
    watched: Watched, figure: Callable[[str], None], device: str, count: int
) -> None:
    acted = watched.scenario("flaps")[device]
    outages = watched.outages_of(acted)

    assert acted["carrier_downs"] == len(acted["true"]) == count
    assert_each_is_found(outages, acted["true"])
    assert {outage.cause for outage in outages} == {"link"}
    width_ms = median(widths_ns(outages)) / 1e6
    figure(
        f"{device}, {watched.name}: {count} of {count} flaps; when a link went is known to "
        f"{width_ms:.0f} ms (median)"
    )


def test_events_narrow_when_a_link_went(
    polling: Watched, events: Watched, figure: Callable[[str], None]
) -> None:
    """Of a veth, whose every edge the kernel tells at once; beside other work both slow down."""
    polled_ns, heard_ns = (
        median(widths_ns(agent.outages_of(agent.scenario("flaps")["rxe0"])))
        for agent in (polling, events)
    )

    figure(f"rxe0: with events the intervals are {heard_ns / polled_ns:.2f} as wide as without")
    assert heard_ns <= LARGEST_SHARE * polled_ns


@pytest.mark.parametrize("device", ["rxe1", "rxe2"])
def test_five_flaps_are_five_where_the_kernel_gives_notice_of_fewer(
    watched: Watched, device: str
) -> None:
    acted = watched.scenario("burst")[device]

    assert acted["carrier_downs"] == 5
    assert acted["link_downed"] < 5  # what counts by the kernel's notices has missed some
    assert_each_is_found(watched.outages_of(acted), acted["true"])


def test_a_false_link_downed_is_no_flap(watched: Watched) -> None:
    acted = watched.scenario("false_link_downed")

    assert acted["link_downed"] > acted["carrier_downs"] == 1
    assert_each_is_found(watched.outages_of(acted), acted["true"])


@pytest.mark.parametrize(
    ("how", "cause"),
    [
        ("veth_admin", "admin"),
        ("veth_cable", "link"),
        ("virtio_cable", "link"),
        ("virtio_admin", "admin"),
        ("dummy_admin", "admin"),
    ],
)
def test_a_port_switched_off_is_told_from_one_whose_cable_was_pulled(
    watched: Watched, how: str, cause: str
) -> None:
    acted = watched.scenario("switched_off")[how]
    outages = watched.outages_of(acted)

    assert acted["port_meanwhile"][watched.name]["up"] is False
    assert_each_is_found(outages, acted["true"])
    assert [outage.cause for outage in outages] == [cause]


def test_one_agent_hears_what_the_kernel_tells_and_the_other_does_not(
    polling: Watched, events: Watched
) -> None:
    """Verbs too, of a device that could not go while it is held: by sources.verbs = "on"."""
    silent, heard = (
        agent.scenario("switched_off")["virtio_cable"]["port_meanwhile"][agent.name]["sources"]
        for agent in (polling, events)
    )

    assert {silent[source] for source in TOLD_BY_THE_KERNEL} == {OFF}
    assert {heard[source] for source in TOLD_BY_THE_KERNEL} == {"on"}


def test_the_total_is_that_of_links_that_went_by_themselves(watched: Watched) -> None:
    """Of a flap by hand so quick that nobody saw it switched off, it is not known whose it was."""
    by_hand = watched.scenario("switched_off")["veth_admin"]["carrier_downs"]
    quick = watched.scenario("verbs_events")
    scenarios = [watched.scenario("flaps")["rxe0"], *watched.scenario("switched_off").values()]
    true = sum(acted["carrier_downs"] for acted in scenarios if acted["port"] == "rxe0/1")
    told = sum(o.count for o in watched.outages_of(quick) if o.cause == "link")

    assert QUICK_FLAPS <= told <= QUICK_FLAPS + 1
    assert link_downs(watched.metrics, "rxe0") == true - by_hand + told


def test_events_of_verbs_that_come_doubled_make_no_flaps(
    watched: Watched, figure: Callable[[str], None]
) -> None:
    acted = watched.scenario("verbs_events")
    told = [kind for kind, _ in acted["events"]]

    assert_each_is_found(watched.outages_of(acted), acted["true"])
    doubled = sum(first == second for first, second in pairwise(told))
    assert doubled > 0
    figure(
        f"rxe0, {watched.name}: {len(acted['true'])} of {len(acted['true'])} quick flaps; verbs "
        f"told {told.count('error')} errors and {told.count('active')} ends, {doubled} like the "
        "one before"
    )
