"""`flapd ports`: of an agent, of this node without one, and of a capture."""

import json

import pytest

from flapd.core.fabric.view import Repair
from flapd.model.times import SECOND_NS
from tests.cli.here import WIDEST, Here, agent_at
from tests.serve.parts import port, view


def test_ports_are_a_table_that_fits(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    long_name = port(key="k", device="mlx5_bond_0", netdev="enp139s0f0np0v1", driver="mlx5_core")
    shown = (
        view(),
        view(
            long_name,
            up=False,
            values={"state": 1, "phys_state": 4, "rate_mbps": 2500, "width_lanes": 1},
            readable=False,
            errors={"counters/link_downed": "EIO"},
            witness_value=None,
            witness_status="unproven",
        ),
    )

    with agent_at(here, ports=shown):
        assert here.command("ports") == 0

    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDEST
    for word in ("mlx5_0/1", "0002:c903:0000:0001", "ib0", "ACTIVE", "LinkUp", "400 Gb/s", "4X"):
        assert word in out
    for word in ("link_downed", "3 counts", "DOWN", "2.5 Gb/s", "- not moved yet"):
        assert word in out
    assert "mlx5_bond_0/1: sysfs: cannot be read: link_downed EIO" in out


def test_without_an_agent_ports_are_read_from_sysfs(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    files = here.directory / "sys/class/infiniband/mlx5_7/ports/1"
    (files / "counters").mkdir(parents=True)
    (files.parent.parent / "node_guid").write_text("0002:c903:0000:0007\n")
    (files / "counters/link_downed").write_text("5\n")
    (files / "state").write_text("4: ACTIVE\n")
    (files / "phys_state").write_text("5: LinkUp\n")
    (files / "rate").write_text("400 Gb/sec (4X NDR)\n")
    (files / "link_layer").write_text("InfiniBand\n")

    assert here.command("ports", "--json") == 0

    out, err = capsys.readouterr()
    (item,) = json.loads(out)["items"]
    assert (item["port"], item["state"], item["flaps_24h"]) == ("mlx5_7/1", "ACTIVE", None)
    assert item["counters"]["link_downed"] == 5
    assert "no agent answers" in err


def test_a_node_without_ports_says_so(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    (here.directory / "sys/class/net").mkdir(parents=True)

    assert here.command("ports") == 0
    assert capsys.readouterr().out.startswith("No ports: ")


def test_what_is_no_sysfs_has_no_answer(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.command("ports") == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "paths.sysfs" in captured.err


def test_what_the_table_has_no_room_for_stands_below_it(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = view(
        port(device="mlx5_bond_0", members=("eth0", "eth1")),
        watched=False,
        ever_up=False,
        flapping=True,
        penalty=2412.7,
        expected_rate_mbps=400_000,
        values={"rate_mbps": 200_000, "width_lanes": 4},
        downgraded=True,
        maintenance=True,
        grace=True,
        saturated=("counters/symbol_error",),
        repaired=Repair(1_700_000_000 * SECOND_NS, "new cable"),
        witness_status="lying",
    )

    with agent_at(here, ports=(shown,)):
        assert here.command("ports") == 0

    out = capsys.readouterr().out
    for words in (
        "was never up here",
        "is flapping: penalty 2413",
        "200 Gb/s",
        "not 400",
        "in maintenance",
        "soon after a boot",
        "count no further: symbol_error",
        "bond of eth0, eth1",
        "new cable",
        "missed a down",
    ):
        assert words in out


def test_a_node_of_a_hub_is_never_taken_for_this_one(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.command("ports", "--node", "node3") == 3
    assert "no agent answers" in capsys.readouterr().err

    assert here.command("ports", "--node", "node3", "--from", "capture.tar") == 2
    assert "--node and --from do not go together" in capsys.readouterr().err

    with agent_at(here, (), (view(),)):
        assert here.command("ports", "--node", "node3") == 2
    assert "--node: there is no such parameter here" in capsys.readouterr().err
