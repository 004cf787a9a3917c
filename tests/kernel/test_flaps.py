"""Flaps of real links under rxe, by polling: counted, dated, told from what is none."""

import pytest

from tests.kernel.guest.bare import CABLE_FLAPS, NETDEVS, VETH_FLAPS
from tests.kernel.image import missing
from tests.kernel.told import Watched, assert_each_is_found, link_downs

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(missing() is not None, reason=f"no virtual machine: {missing()}"),
]


@pytest.mark.parametrize("device", NETDEVS)
def test_a_port_is_found_with_identity_netdev_and_witness(polling: Watched, device: str) -> None:
    truth = polling.scenario("found")[device]

    port = truth["port"]
    assert (port["guid"], port["netdev"]) == (truth["node_guid"], truth["netdev"])
    assert (port["driver"], port["link_layer"], port["up"]) == ("rdma_rxe", "Ethernet", True)
    assert port["witness"]["name"] == "carrier_down_count"
    assert port["witness"]["value"] == truth["downs"]


@pytest.mark.parametrize(("device", "count"), [("rxe0", VETH_FLAPS), ("rxe1", CABLE_FLAPS)])
def test_every_flap_is_counted_and_lies_in_its_interval(
    polling: Watched, device: str, count: int
) -> None:
    acted = polling.scenario("flaps")[device]
    outages = polling.outages_of(acted)

    assert acted["carrier_downs"] == len(acted["true"]) == count
    assert_each_is_found(outages, acted["true"])
    assert {outage.cause for outage in outages} == {"link"}


@pytest.mark.parametrize("device", ["rxe1", "rxe2"])
def test_five_flaps_are_five_where_the_kernel_gives_notice_of_fewer(
    polling: Watched, device: str
) -> None:
    acted = polling.scenario("burst")[device]

    assert acted["carrier_downs"] == 5
    assert acted["link_downed"] < 5  # what counts by the kernel's notices has missed some
    assert_each_is_found(polling.outages_of(acted), acted["true"])


def test_a_false_link_downed_is_no_flap(polling: Watched) -> None:
    acted = polling.scenario("false_link_downed")

    assert acted["link_downed"] > acted["carrier_downs"] == 1
    assert_each_is_found(polling.outages_of(acted), acted["true"])


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
    polling: Watched, how: str, cause: str
) -> None:
    acted = polling.scenario("switched_off")[how]
    outages = polling.outages_of(acted)

    assert acted["port_meanwhile"]["up"] is False
    assert_each_is_found(outages, acted["true"])
    assert [outage.cause for outage in outages] == [cause]


def test_the_total_is_that_of_links_that_went_by_themselves(polling: Watched) -> None:
    by_hand = polling.scenario("switched_off")["veth_admin"]["carrier_downs"]
    scenarios = [polling.scenario("flaps")["rxe0"], *polling.scenario("switched_off").values()]
    true = sum(acted["carrier_downs"] for acted in scenarios if acted["port"] == "rxe0/1")

    assert link_downs(polling.metrics, "rxe0") == true - by_hand
