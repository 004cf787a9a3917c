"""Topology files say who is at the other end of a cable, or which line is not right."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fleet import Peer
from flapd.core.fleet.topology_text import topology_of
from flapd.model.errors import FlapdError

WHOLE = """\
#
# Topology file: generated on Mon Nov 30 08:00:00 2026
#
# Initiated from node b83fd20300010001 port b83fd20300010001

vendid=0x2c9
devid=0xd2f2
sysimgguid=0xfc6a1c0300aa0000
switchguid=0xfc6a1c0300aa0000(fc6a1c0300aa0000)
Switch\t65 "S-fc6a1c0300aa0000"\t\t# "MF0;leaf-1:MQM9700/U1" enhanced port 0 lid 7 lmc 0
[1]\t"H-b83fd20300010001"[1](b83fd20300010001) \t\t# "node1 mlx5_0" lid 9 4xNDR
[2][ext 33]\t"S-fc6a1c0300bb0000"[4]\t\t# "Quantum-2" lid 8 4xNDR

vendid=0x2c9
devid=0x1021
sysimgguid=0xb83fd20300010001
caguid=0xb83fd20300010001
Ca\t1 "H-b83fd20300010001"\t\t# "node1 mlx5_0"
[1](b83fd20300010001) \t"S-fc6a1c0300aa0000"[1]\t\t# lid 9 lmc 0 "MF0;leaf-1:MQM9700/U1" lid 7 4xNDR

caguid=0xb83fd20300020010
Ca\t2 "H-b83fd20300020010"\t\t# "node2 HCA-1"
[1](b83fd20300020011) \t"S-fc6a1c0300bb0000"[5]\t\t# lid 3 lmc 0 "Quantum-2" lid 8 4xNDR
[2](b83fd20300020012) \t"S-fc6a1c0300cc0000"[5]\t\t# lid 4 lmc 0 "Quantum-2" lid 11 4xNDR

caguid=0xb83fd20300030001
Ca\t1 "H-b83fd20300030001"\t\t# "node3 mlx5_0"
[1](b83fd20300030001) \t"H-b83fd20300040001"[1] (b83fd20300040001) \t\t# lid 1 lmc 0 "node4 mlx5_2" lid 2 4xHDR
"""  # noqa: E501
LISTED = """\
CA     9  1 0xb83fd20300010001 4x NDR - SW     7  1 0xfc6a1c0300aa0000 ( 'node1 mlx5_0' - 'MF0;leaf-1:MQM9700/U1' )
SW     7  1 0xfc6a1c0300aa0000 4x NDR - CA     9  1 0xb83fd20300010001 ( 'MF0;leaf-1:MQM9700/U1' - 'node1 mlx5_0' )
SW     7  3 0xfc6a1c0300aa0000 4x ???                                    'MF0;leaf-1:MQM9700/U1'
"""  # noqa: E501
LEAF = Peer("MF0;leaf-1:MQM9700/U1", "1")


@pytest.mark.parametrize("text", [WHOLE, LISTED, LISTED.replace("\n", "\r\n")])
def test_ibnetdiscover_names_the_peer_by_guid_and_by_node(text: str) -> None:
    topology = topology_of(text)

    assert topology.peer_of("other", "mlx5_7/1", "b83f:d203:0001:0001") == LEAF
    assert topology.peer_of("node1.example.com", "mlx5_0/1", None) == LEAF
    assert topology.peer_of("node1", "mlx5_1/1", None) is None


def test_a_port_of_two_is_found_by_its_own_guid_and_by_its_devices() -> None:
    topology = topology_of(WHOLE)
    first, second = Peer("Quantum-2 0xfc6a1c0300bb0000", "5"), "Quantum-2 0xfc6a1c0300cc0000"

    assert topology.peer_of("node2", "mlx5_0/1", "0xb83fd20300020010") == first
    assert topology.peer_of("node2", "mlx5_0/2", "b83f:d203:0002:0010") == Peer(second, "5")
    assert topology.peer_of("node2", "mlx5_0/2", "b83f:d203:0002:0012") == Peer(second, "5")


def test_two_nodes_wired_to_each_other_are_each_others_peers() -> None:
    assert topology_of(WHOLE).peer_of("node3", "mlx5_0/1", None) == Peer("node4", "mlx5_2/1")


@pytest.mark.parametrize(
    "text",
    [
        "node1,mlx5_0,1,leaf-1,12\n",
        "node,device,port,switch,switch_port\n# rack 3\n\nnode1,mlx5_0,1,leaf-1,12\n",
        "switch,switch_port,guid\nleaf-1,12,0xb83fd20300010001\n",
        'guid,node,device,switch,switch_port\nb83f:d203:0001:0001,node1,mlx5_0,"leaf-1",12\r\n',
    ],
)
def test_csv_names_the_peer(text: str) -> None:
    peer = topology_of(text).peer_of("node1", "mlx5_0/1", "b83f:d203:0001:0001")

    assert peer == Peer("leaf-1", "12")
    assert str(peer) == "leaf-1 port 12"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("node1,mlx5_0,1,leaf-1\n", "line 1: 4 values, and there should be 5"),
        ("node1,mlx5_0,1,leaf-1,1\nnode2,mlx5_0,x,leaf-1,2\n", "line 2: port is the number"),
        ("node1,mlx5_0,1,,1\n", "line 1: no switch is named"),
        (",mlx5_0,1,leaf,1\n", "line 1: no port is named"),
        ('node1,"mlx5_0,1,leaf-1,1\n', "line 1: this is no CSV"),
        ("switch,colour\n", "line 1: columns are"),
        ("switch,node\n", "line 1: a port is told by the column guid"),
        ("guid,switch\nxyz,leaf\n", "line 2: 'xyz' is no GUID"),
        ("x" * 5000, "line 1: longer than"),
        ("n" * 300 + ",mlx5_0,1,leaf,1", "line 1: a value is longer"),
        (WHOLE + "[1](zz) oops\n", "line 29: no line that ibnetdiscover prints"),
        (LISTED + "CA 1 - ?\n", "line 4: no line that ibnetdiscover prints"),
    ],
)
def test_a_line_that_is_not_right_is_told_with_its_number(text: str, said: str) -> None:
    with pytest.raises(FlapdError, match=f"topology {said}"):
        topology_of(text)


LINES = st.sampled_from([*WHOLE.split("\n"), *LISTED.split("\n"), "a,b,1,c,d", "switch,guid", ""])
DAMAGED = st.tuples(LINES, st.integers(0, 80), st.text(max_size=3)).map(
    lambda said: said[0][: said[1]] + said[2] + said[0][said[1] + 1 :]
)


@given(st.lists(LINES | DAMAGED, max_size=30))
def test_no_text_does_worse_than_to_be_refused(lines: list[str]) -> None:
    with suppress(FlapdError):
        topology = topology_of("\n".join(lines))
        assert topology.peer_of("nobody", "mlx5_0/1", "not a guid") is None
