"""Each driver shows what it shows on real nodes: what is missing, constant or refused."""

import errno

import pytest
from msgspec.structs import replace

from simulators.fabric.node import Directory, Symlink, Tree
from simulators.fabric.rates import Rate
from simulators.fabric.scenarios import all_drivers
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Spec, two_ports
from tests.simulators.fabric.trees import answer, resolve, tree_of

CLASS = "/class/infiniband"
UP, DOWN = 1.5, 2.75
"""Every port of the scenario is down from 2 s to 3 s, the bond from 2.5 s."""


@pytest.fixture(scope="module")
def tree() -> Tree:
    return tree_of(all_drivers())


def names(tree: Tree, path: str) -> tuple[str, ...]:
    node = tree[resolve(tree, path)]
    assert isinstance(node, Directory)
    return node.names


@pytest.mark.parametrize(
    ("port", "up", "down", "physical"),
    [
        ("mlx5_0/ports/1", "4: ACTIVE", "1: DOWN", "2: Polling"),
        ("mlx5_1/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("mlx5_3/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("mlx5_bond_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("mlx4_0/ports/1", "4: ACTIVE", "1: DOWN", "2: Polling"),
        ("mlx4_0/ports/2", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("bnxt_re_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("irdma_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("efa_0/ports/1", "4: ACTIVE", "4: ACTIVE", "5: LinkUp"),
        ("hfi1_0/ports/1", "4: ACTIVE", "1: DOWN", "2: Polling"),
        ("qedr_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("rxe_0/ports/1", "4: ACTIVE", "1: DOWN", "2: Polling"),
        ("siw_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("mana_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("erdma_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
        ("hns_0/ports/1", "4: ACTIVE", "1: DOWN", "3: Disabled"),
    ],
)
def test_states_of_a_down_are_those_of_the_driver(
    tree: Tree, port: str, up: str, down: str, physical: str
) -> None:
    assert answer(tree, f"{CLASS}/{port}/state", UP) == up
    assert answer(tree, f"{CLASS}/{port}/state", DOWN) == down
    assert answer(tree, f"{CLASS}/{port}/phys_state", DOWN) == physical


@pytest.mark.parametrize(
    ("file", "before", "after"),
    [
        ("mlx5_0/ports/1/counters/link_downed", "0", "1"),
        ("mlx5_1/ports/1/counters/link_downed", "0", "0"),
        ("mlx4_0/ports/1/counters/link_downed", "0", "1"),
        ("mlx4_0/ports/2/counters/link_downed", "0", "0"),
        ("hfi1_0/ports/1/counters/link_downed", "0", "1"),
        ("hfi1_0/ports/1/hw_counters/SwLinkDown,32", "0", "1"),
        ("rxe_0/ports/1/hw_counters/link_downed", "0", "1"),
        ("bnxt_re_0/ports/1/hw_counters/to_retransmits", "0", "7"),
        ("efa_0/ports/1/hw_counters/retrans_timeout_events", "0", "7"),
        ("mana_0/ports/1/hw_counters/requester_oos_nak", "0", "3"),
        ("irdma_0/device/net/irdmanet/carrier_down_count", "1", "2"),
        ("mlx4_0/device/net/net1/carrier_down_count", "1", "2"),
        ("mlx4_0/device/net/net2/dev_port", "1", "1"),
        ("efa_0/ports/1/link_layer", "Unknown", "Unknown"),
        ("efa_0/hw_counters/keep_alive_rcvd", "0", "0"),
        ("rxe_0/parent", "rxenet", "rxenet"),
        ("siw_0/node_type", "4: RNIC", "4: RNIC"),
        ("bnxt_re_0/ports/1/gid_attrs/ndevs/0", "bnxt_renet", "bnxt_renet"),
    ],
)
def test_a_down_moves_what_the_driver_moves(tree: Tree, file: str, before: str, after: str) -> None:
    assert answer(tree, f"{CLASS}/{file}", UP) == before
    assert answer(tree, f"{CLASS}/{file}", DOWN) == after


@pytest.mark.parametrize(
    "file",
    [
        "qedr_0/ports/1/counters/link_downed",
        "qedr_0/ports/1/counters/port_xmit_data",
        "mlx5_2/ports/1/counters/link_downed",
        "mlx5_2/ports/1/counters/symbol_error",
        "efa_0/ports/1/gid_attrs/ndevs/0",
        "siw_0/ports/1/gid_attrs/ndevs/0",
    ],
)
def test_reads_that_the_driver_refuses(tree: Tree, file: str) -> None:
    assert answer(tree, f"{CLASS}/{file}", UP) == errno.EINVAL


@pytest.mark.parametrize(
    "path",
    [
        *(
            f"{driver}_0/ports/1/counters"
            for driver in ("bnxt_re", "irdma", "efa", "rxe", "siw", "mana", "erdma", "hns")
        ),
        "siw_0/ports/1/hw_counters",
        "qedr_0/ports/1/hw_counters",
        "rxe_0/device",
        "siw_0/device",
        "siw_0/parent",
        "mlx5_0/hw_counters",
    ],
)
def test_what_a_driver_does_not_have_is_not_there(tree: Tree, path: str) -> None:
    device, _, rest = path.partition("/")
    assert f"{resolve(tree, f'{CLASS}/{device}')}/{rest}" not in tree


def test_hardware_counters_stand_beside_the_life_of_their_cache(tree: Tree) -> None:
    for device in names(tree, CLASS):
        for number in names(tree, f"{CLASS}/{device}/ports"):
            port = f"{CLASS}/{device}/ports/{number}"
            if "hw_counters" in names(tree, port):
                assert "lifespan" in names(tree, f"{port}/hw_counters")


def test_software_devices_are_virtual(tree: Tree) -> None:
    assert tree[f"{CLASS}/rxe_0"] == Symlink("../../devices/virtual/infiniband/rxe_0")


def test_a_device_can_have_two_ports_each_with_a_netdev(tree: Tree) -> None:
    assert names(tree, f"{CLASS}/mlx4_0/ports") == ("1", "2")
    assert names(tree, f"{CLASS}/mlx4_0/device/net") == ("net1", "net2")


def test_a_virtual_function_names_its_physical_one(tree: Tree) -> None:
    function = resolve(tree, f"{CLASS}/mlx5_3/device/physfn")

    assert function == resolve(tree, f"{CLASS}/mlx5_1/device")


def test_what_manages_nvlink_says_so_in_its_vital_product_data(tree: Tree) -> None:
    vpd = [answer(tree, f"{CLASS}/{device}/device/vpd", UP) for device in ("mlx5_0", "mlx5_2")]

    assert ["SMDL=SW_MNG" in str(content) for content in vpd] == [False, True]


def test_members_of_a_bond_flap_by_themselves_and_the_bond_with_the_last(tree: Tree) -> None:
    bond = "/class/net/bond0"
    files = (
        f"{bond}/lower_eth40/carrier",
        f"{bond}/lower_eth41/carrier",
        f"{bond}/carrier",
        f"{bond}/carrier_down_count",
        f"{bond}/lower_eth40/bonding_slave/mii_status",
        f"{CLASS}/mlx5_bond_0/ports/1/state",
    )

    at = [[answer(tree, file, second) for file in files] for second in (1, 2.2, 2.7, 3.2, 4)]

    assert at == [
        ["1", "1", "1", "1", "up", "4: ACTIVE"],
        ["0", "1", "1", "1", "down", "4: ACTIVE"],
        ["0", "0", "0", "2", "down", "1: DOWN"],
        ["1", "0", "1", "2", "up", "4: ACTIVE"],
        ["1", "1", "1", "2", "up", "4: ACTIVE"],
    ]


def test_a_bond_names_its_members_and_they_their_bond(tree: Tree) -> None:
    assert answer(tree, "/class/net/bond0/bonding/slaves", UP) == "eth40 eth41"
    assert answer(tree, f"{CLASS}/mlx5_bond_0/ports/1/gid_attrs/ndevs/0", UP) == "bond0"
    for member in ("eth40", "eth41"):
        assert resolve(tree, f"/class/net/{member}/master") == "/devices/virtual/net/bond0"
        assert resolve(tree, f"/class/net/{member}/device").endswith(f".{member[-1]}")


def test_every_link_of_every_driver_leads_somewhere(tree: Tree) -> None:
    links = [path for path, node in tree.items() if isinstance(node, Symlink)]

    assert all(resolve(tree, path) in tree for path in links)
    assert len(links) > 50


def with_port(index: int, **changes: object) -> Tree:
    ports = list(two_ports().ports)
    ports[index] = replace(ports[index], **changes)
    return tree_of(Spec(tuple(ports)))


def test_a_disabled_interface_refuses_its_carrier_and_loses_its_flag() -> None:
    tree = with_port(1, flaps=(Flap(1, 1, "admin"),))
    net = "/class/net/eth2"
    files = (f"{net}/carrier", f"{net}/speed", f"{net}/operstate", f"{net}/flags")

    at = [[answer(tree, file, second) for file in files] for second in (0, 1, 2)]

    up = ["1", "400000", "up", "0x1003"]
    assert at == [up, [errno.EINVAL, errno.EINVAL, "down", "0x1002"], up]


def test_a_disabled_infiniband_port_is_disabled_and_its_netdev_only_without_carrier() -> None:
    tree = with_port(0, flaps=(Flap(1, 1, "admin", counted=False),))
    port = f"{CLASS}/mlx5_0/ports/1"

    assert answer(tree, f"{port}/phys_state", 1) == "3: Disabled"
    assert answer(tree, f"{port}/counters/link_downed", 1) == "0"
    assert answer(tree, "/class/net/ib0/carrier", 1) == "0"
    assert answer(tree, "/class/net/ib0/flags", 1) == "0x1003"


def test_a_logical_down_leaves_the_link_and_takes_the_carrier_of_ipoib() -> None:
    tree = with_port(0, flaps=(Flap(1, 1, "logical"),))
    port = f"{CLASS}/mlx5_0/ports/1"
    files = (f"{port}/state", f"{port}/phys_state", f"{port}/counters/link_downed")

    at = [answer(tree, file, 1) for file in files]

    assert at == ["2: INIT", "5: LinkUp", "0"]
    assert answer(tree, "/class/net/ib0/carrier_down_count", 1) == "2"


def test_a_link_that_returns_slower_says_so() -> None:
    tree = with_port(1, flaps=(Flap(1, 1, rate_after=Rate(100, lanes=1)),))
    files = (f"{CLASS}/mlx5_1/ports/1/rate", "/class/net/eth2/speed")

    at = [[answer(tree, file, second) for file in files] for second in (0, 2)]

    assert at == [["400 Gb/sec (4X NDR)", "400000"], ["100 Gb/sec (1X NDR)", "100000"]]


def test_a_port_that_is_never_up_is_down_with_its_netdev() -> None:
    tree = with_port(0, never_up=True)

    assert answer(tree, f"{CLASS}/mlx5_0/ports/1/state", 99) == "1: DOWN"
    assert answer(tree, "/class/net/ib0/carrier_changes", 99) == "0"


def test_a_state_can_be_constant_while_the_netdev_goes_down() -> None:
    tree = with_port(1, state_is_constant=True, flaps=(Flap(1, 1),))

    assert answer(tree, f"{CLASS}/mlx5_1/ports/1/state", 1) == "4: ACTIVE"
    assert answer(tree, "/class/net/eth2/carrier", 1) == "0"


def test_files_that_a_port_is_to_be_without_are_not_there() -> None:
    tree = with_port(0, without=("counters/*", "hw_counters/*"))

    present = names(tree, f"{CLASS}/mlx5_0/ports/1")

    assert "state" in present
    assert not {"counters", "hw_counters"} & set(present)
