"""A scenario file is read strictly, and what is wrong is told in one sentence."""

from pathlib import Path

import msgspec
import pytest

from simulators.errors import SimulatorError
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Fault, RandomFlaps, Spec, read_spec, two_ports


def test_a_scenario_survives_its_file(tmp_path: Path) -> None:
    drawn = RandomFlaps(1, 3, 0.1, 0.2, 1, 2)
    ports = list(two_ports((Flap(1, 2),)).ports)
    ports[1] = msgspec.structs.replace(ports[1], flaps=drawn)
    spec = Spec(tuple(ports), (Fault("/class/*", "hang", 1, 2),))
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(spec))

    assert read_spec(tmp_path / "spec.json") == spec


def test_random_flaps_leave_room_for_the_subnet_manager() -> None:
    drawn = RandomFlaps(
        seed=1,
        count=50,
        shortest_seconds=0.1,
        longest_seconds=0.2,
        begin_seconds=0,
        gap_seconds=0.01,
    )
    port = msgspec.structs.replace(two_ports().ports[0], flaps=drawn, subnet_seconds=3)

    assert len(port.schedule().flaps) == 50


FLAP = {"start_seconds": 1, "down_seconds": 1}
MEMBER = {"netdev": "eth7", "pci": "0000:77:00.0"}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"colour": "red"}, "unknown field `colour`"),
        ({"link_layer": "Token Ring"}, "Token Ring"),
        ({"guid": "12"}, "guid"),
        ({"pci": "0000:00:00.0"}, "bus above 00"),
        ({"initial": {"counters/nope": 1}}, "counters/nope"),
        ({"flaps": [{"start_seconds": 1, "down_seconds": 5}] * 2}, "begins before"),
        ({"link_layer": "Ethernet", "subnet_seconds": 1}, "subnet_seconds"),
        ({"device": "mlx5_1"}, "two ports have the same name"),
        ({"device": "mlx5_1", "number": 2}, "ports of mlx5_1 differ"),
        ({"netdev": "eth2"}, "two ports have the same netdev"),
        ({"guid": "b83f:d203:0012:3451"}, "two ports have the same guid"),
        ({"pci": "0000:5e:00.0"}, "two ports have the same pci"),
        ({"driver": "mlx6"}, "mlx6"),
        ({"driver": "bnxt_re"}, "link_layer of a port of bnxt_re is Ethernet"),
        ({"driver": "rxe", "link_layer": "Ethernet"}, "has no pci function"),
        ({"pci": None}, "needs a pci function"),
        ({"rate_gbps": 123}, "no link of 4 lanes runs at 123"),
        ({"vf_of": "0000:77:00.0"}, "vf_of of mlx5_0/1"),
        ({"counters": {"counters/nope": {}}}, "counters/nope"),
        (
            {"link_layer": "Ethernet", "flaps": [FLAP | {"kind": "logical"}]},
            "no subnet manager",
        ),
        ({"never_up": True, "flaps": [FLAP]}, "never_up"),
        ({"real_netdev": "/sys/class/net/lo", "flaps": [FLAP]}, "carrier is real"),
        ({"members": [MEMBER]}, "members needs link_layer Ethernet"),
        ({"link_layer": "Ethernet", "members": [MEMBER]}, "the first of members"),
        (
            {
                "link_layer": "Ethernet",
                "members": [MEMBER | {"pci": "0000:3b:00.0"}],
                "flaps": [FLAP],
            },
            "a bond has no flaps of its own",
        ),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, change: dict[str, object], said: str) -> None:
    tree = msgspec.to_builtins(two_ports())
    tree["ports"][0].update(change)
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(tree))

    with pytest.raises(SimulatorError, match=said):
        read_spec(tmp_path / "spec.json")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(SimulatorError, match=r"nothing\.json cannot be read: No such file"):
        read_spec(tmp_path / "nothing.json")


def test_an_errno_nobody_knows_is_refused() -> None:
    with pytest.raises(ValueError, match="EWHATEVER"):
        Fault("/x", "errno", 0, 1, "EWHATEVER")
