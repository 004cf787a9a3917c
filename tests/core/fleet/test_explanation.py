"""What is said of the other ends of cables."""

from flapd.core.fleet.explanation import peers_told
from flapd.core.fleet.topology import Link, Peer, Topology
from flapd.model.incident import Cause


def test_a_cable_that_went_twice_has_one_other_end() -> None:
    topology = Topology([Link(Peer("leaf1", "7"), node="node0", port="mlx5_0/1")])
    twice = [
        Cause(
            flap=flap,
            port="mlx5_0/1",
            key="b83f:d203:0012:0001/1",
            node="node0",
            probability=0.5,
            chance=0.0,
            lag_seconds=1.0,
            symptom="stall",
        )
        for flap in ("flap-a", "flap-b")
    ]

    assert list(peers_told(twice, topology)) == [
        "The other end of mlx5_0/1 of node0 is leaf1 port 7."
    ]
