"""A port that is read by netlink and by files, whichever works just now."""

from collections.abc import Callable
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.core.fabric.catalogue import Tier
from flapd.model.observation import READ_STATE, Sample
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.netlink_port import NetlinkPort
from flapd.sources.plan import commands_per_second, plan_of
from flapd.sources.port_reader import PortReader
from flapd.sources.rdma_netlink import PORT_GET, STAT_GET, RdmaNetlink
from tests.sources.made_up_rdma import GUID, MadeUpRdma
from tests.trees import lay_out

NAMES = ("rx_write_requests", "packet_seq_err", "out_of_sequence")
STATES = {1: "1: DOWN", 2: "2: INIT", 4: "4: ACTIVE"}
PHYSICAL = {2: "2: Polling", 5: "5: LinkUp"}


class Node:
    """One port as files and as netlink, both saying the same, and what an agent makes of it."""

    def __init__(self, root: Path, *, guid: str = GUID) -> None:
        self.kernel = MadeUpRdma(dict.fromkeys(NAMES, 0), guid)
        self.root = root
        self.directory = root / "class/infiniband/mlx5_0/ports/1"
        lay_out(self.directory, {"rate": "400 Gb/sec (4X NDR)\n", "counters/link_downed": "3\n"})
        self.write()
        self.port = Port(
            f"{GUID}/1",
            "mlx5_0",
            1,
            "InfiniBand",
            guid=GUID,
            driver="mlx5_core",
            witnesses=("counters/link_downed",),
        )
        self._ticks = count(1)
        self.now_ns = 0
        self.netlink = NetlinkPort(
            RdmaNetlink(self.kernel), "mlx5_0", GUID, 1, now_ns=lambda: self.now_ns
        )
        self.reader = PortReader(
            self.port, plan_of(root, self.port), self._look, netlink=self.netlink
        )
        self.values: dict[str, int] = {}
        self.errors: dict[str, str] = {}

    def _look(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns

    def write(self) -> None:
        """The files say what netlink does."""
        kernel = self.kernel
        files = {
            "state": f"{STATES[kernel.state]}\n",
            "phys_state": f"{PHYSICAL[kernel.physical_state]}\n",
        }
        hardware = {f"hw_counters/{name}": f"{kernel.counters.get(name, 0)}\n" for name in NAMES}
        lay_out(self.directory, files | hardware)

    def sweep(self, tier: Tier = "slow", *, arrives: bool = True) -> Sample:
        sample = self.reader.sample(self.reader.sweep(tier))
        if arrives:
            self.values = {**self.values, **sample.values}
            self.errors = {**self.errors, **sample.errors}
            for name in sample.errors:
                self.values.pop(name, None)
            for name in sample.values:
                self.errors.pop(name, None)
            self.reader.sent()
        return sample

    def asked(self) -> list[int]:
        asked = [kind for kind in self.kernel.asked if kind in {PORT_GET, STAT_GET}]
        self.kernel.asked.clear()
        return asked

    @property
    def truth(self) -> dict[str, int]:
        kernel = self.kernel
        return {
            "state": kernel.state,
            "phys_state": kernel.physical_state,
            **{f"hw_counters/{name}": value for name, value in kernel.counters.items()},
        }

    def known(self) -> dict[str, int]:
        return {name: self.values[name] for name in self.truth if name in self.values}


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_slow_sweep_is_two_questions_and_no_file_of_what_they_tell(node: Node) -> None:
    for name in ("state", "phys_state", *(f"hw_counters/{name}" for name in NAMES)):
        (node.directory / name).unlink()
        (node.directory / name).touch()

    sample = node.sweep()

    assert node.asked() == [PORT_GET, STAT_GET]
    assert (node.known(), sample.errors) == (node.truth, {})
    assert sample.reads & READ_STATE


def test_what_does_not_move_is_not_told_again(node: Node) -> None:
    node.sweep()

    assert node.sweep().values == {}
    node.kernel.counters["packet_seq_err"] = 7
    assert node.sweep().values == {"hw_counters/packet_seq_err": 7}


def test_a_counter_that_netlink_leaves_out_is_read_from_its_file(node: Node) -> None:
    del node.kernel.counters["packet_seq_err"]
    (node.directory / "hw_counters/packet_seq_err").write_text("12\n")

    node.sweep()

    assert node.values["hw_counters/packet_seq_err"] == 12


@pytest.mark.parametrize("kind", [PORT_GET, STAT_GET])
@pytest.mark.parametrize("way", ["refuses", "garbles"])
def test_what_goes_wrong_with_netlink_costs_no_reading(node: Node, kind: int, way: str) -> None:
    node.sweep()
    getattr(node.kernel, way).add(kind)
    node.kernel.state, node.kernel.physical_state = 1, 2
    node.kernel.counters["out_of_sequence"] = 9
    node.write()

    sample = node.sweep()

    assert (node.known(), node.errors) == (node.truth, {})
    assert sample.reads & READ_STATE
    assert list(node.netlink.refused.values()) == [{"refuses": "EINVAL", "garbles": "EBADMSG"}[way]]


@pytest.mark.parametrize("kind", [PORT_GET, STAT_GET])
def test_a_file_that_says_what_it_said_before_netlink_said_something_else_is_news(
    node: Node, kind: int
) -> None:
    def move(state: int, physical: int, sequence: int) -> None:
        node.kernel.state, node.kernel.physical_state = state, physical
        node.kernel.counters["out_of_sequence"] = sequence
        node.write()

    move(1, 2, 7)
    node.kernel.refuses.add(kind)
    node.sweep()
    node.kernel.refuses.clear()
    node.now_ns += 61 * SECOND_NS
    move(4, 5, 8)
    node.sweep()
    assert node.netlink.refused == {}
    node.kernel.refuses.add(kind)
    move(1, 2, 7)

    node.sweep()

    assert node.known() == node.truth


def test_netlink_that_speaks_of_another_device_is_asked_for_nothing(tmp_path: Path) -> None:
    node = Node(tmp_path, guid="ffff:c903:0000:0001")

    node.sweep()

    assert node.asked() == []
    assert (node.known(), node.errors) == (node.truth, {})
    assert set(node.netlink.refused.values()) == {"ENODEV"}


def test_a_device_registered_anew_is_told_as_by_a_descriptor_before_what_is_new(
    node: Node,
) -> None:
    node.sweep()
    node.kernel.index = 8
    node.kernel.counters = dict.fromkeys(NAMES, 0)
    node.kernel.counters["out_of_sequence"] = 1

    lost = node.sweep(arrives=False)
    still = node.sweep()
    anew = node.sweep()

    for sample in (lost, still):
        assert sample.errors["state"] == "ENODEV"
        assert "state" not in sample.values
    assert anew.values["state"] == 4
    assert (node.known(), node.errors) == (node.truth, {})


def test_a_device_that_is_gone_is_told_by_its_files(node: Node) -> None:
    node.sweep()
    node.kernel.is_gone = True
    for name in ("state", "phys_state"):
        (node.directory / name).unlink()

    node.sweep()

    assert node.errors["state"] == "ENOENT"


def test_a_counter_that_only_netlink_has_ends_when_that_tells_no_more_of_it(node: Node) -> None:
    node.kernel.counters["cc_rx_cnp_pkts"] = 5
    node.sweep()
    assert node.values["hw_counters/cc_rx_cnp_pkts"] == 5

    del node.kernel.counters["cc_rx_cnp_pkts"]
    node.sweep()

    assert node.errors == {"hw_counters/cc_rx_cnp_pkts": "ENOENT"}


def test_the_witness_is_read_on_its_own_tier_alone(tmp_path: Path) -> None:
    """Or a rise would be known before it is read as one."""
    node = Node(tmp_path)
    name = "hw_counters/SwLinkDown,32"
    lay_out(node.directory, {name: "3\n"})
    port = Port("k", "mlx5_0", 1, "InfiniBand", guid=GUID, driver="hfi1", witnesses=(name,))
    reader = PortReader(port, plan_of(tmp_path, port), netlink=node.netlink)
    reader.sample(reader.sweep("fast"))
    reader.sent()
    node.kernel.counters["SwLinkDown,32"] = 4

    slow = reader.sample(reader.sweep("slow"))

    assert slow.values["hw_counters/out_of_sequence"] == 0
    assert name not in slow.values


def cost_of(reader: PortReader, port: Port) -> float:
    intervals_ns: dict[Tier, int] = {
        "fast": SECOND_NS // 10,
        "slow": SECOND_NS // 2,
        "rare": 30 * SECOND_NS,
    }
    files = reader.files_at_rest(closely=False)
    costs = commands_per_second(port, files, intervals_ns, at_once=reader.counters_by_netlink)
    return sum(costs.values())


def test_eight_hcas_cost_what_the_budget_is_made_for(node: Node) -> None:
    lay_out(
        node.directory,
        {f"counters/{name}": "0\n" for name in ("port_xmit_data", "port_rcv_data")}
        | {f"counters/{name}": "0\n" for name in ("symbol_error", "link_error_recovery")},
    )
    (node.directory / "hw_counters/rx_write_requests").unlink()  # so that files cost more
    reader = PortReader(node.port, plan_of(node.root, node.port), netlink=node.netlink)
    by_files = cost_of(reader, node.port)

    reader.sweep("slow")

    assert 8 * cost_of(reader, node.port) == pytest.approx(340, abs=12)
    assert cost_of(reader, node.port) < by_files


Step = Callable[[Node], None]


def _refuse(kind: int) -> Step:
    return lambda node: node.kernel.refuses.symmetric_difference_update({kind})


def _pass_a_minute(node: Node) -> None:
    node.now_ns += 61 * SECOND_NS


def _toggle_optional(node: Node) -> None:
    if node.kernel.counters.pop("cc_rx_cnp_pkts", None) is None:
        node.kernel.counters["cc_rx_cnp_pkts"] = 1


@st.composite
def _moves(draw: st.DrawFn) -> Step:
    state, physical = draw(st.sampled_from([*STATES])), draw(st.sampled_from([*PHYSICAL]))
    name, value = draw(st.sampled_from(NAMES)), draw(st.integers(0, (1 << 64) - 1))

    def move(node: Node) -> None:
        node.kernel.state, node.kernel.physical_state = state, physical
        node.kernel.counters[name] = value
        node.write()

    return move


STEPS = st.one_of(
    _moves(),
    st.sampled_from([_refuse(PORT_GET), _refuse(STAT_GET), _pass_a_minute, _toggle_optional]),
    st.booleans().map(lambda arrives: lambda node: node.sweep(arrives=arrives)),
    st.just(lambda node: node.sweep("fast")),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEPS, max_size=25))
def test_whichever_way_it_is_read_the_agent_knows_the_truth(steps: list[Step]) -> None:
    """What a plainly active port's second file would say is the exception: it is not read."""
    with TemporaryDirectory() as root:
        node = Node(Path(root))
        for step in steps:
            step(node)
        node.sweep()
        node.reader.close()

    truth = node.truth
    if STAT_GET in node.kernel.refuses or node.netlink.refused:
        truth.pop("hw_counters/cc_rx_cnp_pkts", None)
    if node.kernel.state == 4:
        del truth["phys_state"]
    assert {name: node.values.get(name) for name in truth} == truth
    assert set(node.errors) <= {"hw_counters/cc_rx_cnp_pkts"}
