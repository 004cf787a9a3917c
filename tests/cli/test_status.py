"""`flapd status` against a real server: one screen, and whether all is well."""

import json

import pytest

from flapd.cli.main import main
from flapd.core.fabric.view import MaintenanceView, Snapshot
from flapd.model.times import SECOND_NS
from flapd.serve.agent import Health
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.serve.parts import port, view

WELL = view(errors={})
OTHER = view(port(key="0x2/1", device="mlx5_1"), errors={})


def test_a_node_that_is_well_says_so(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, (recent(),), (WELL,)) as (agent, _):
        agent.shown = Snapshot(ports=(WELL,), ports_expected=1)
        assert here.command("status") == 0

    out = capsys.readouterr().out
    assert out.startswith("node17: all is well\n")
    assert "1 of 1 expected watched, 1 up" in out
    assert f"{here.directory}/history.sqlite" in out.replace("\n              ", "")
    assert "wrong now" not in out
    assert max(map(len, out.splitlines())) <= WIDEST


def test_what_is_wrong_is_told_and_is_a_no(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    shown = Snapshot(
        ports=(view(up=False, errors={}), view(OTHER.port, flapping=True, penalty=2400.0)),
        ports_expected=3,
        stuck_readers={"mlx5_1": 0},
        maintenance=(MaintenanceView(None, 1_900_000_000 * SECOND_NS, "new switch"),),
    )

    with agent_at(here) as (agent, _):
        agent.shown = shown
        agent.reasons = ["the history cannot be written"]
        assert here.command("status") == 1

    out = capsys.readouterr().out
    assert "things are wrong" in out.splitlines()[0]
    for words in ("mlx5_0/1", "down", "flapping", "waits in one read", "cannot be written"):
        assert words in out
    assert "all ports until" in out
    assert "new switch" in out
    assert max(map(len, out.splitlines())) <= WIDEST


def test_a_configuration_that_waits_for_a_restart_is_a_no(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, ports=(WELL,)) as (agent, _):
        agent.health = Health(restart_needed=("http", "log"))
        assert here.command("status") == 1

    assert "changed in what needs a restart: http, log" in capsys.readouterr().out


def test_a_node_of_which_nothing_was_ever_up_is_not_well(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, ports=(view(ever_up=False, watched=False, up=False),)) as (_, url):
        assert here.command("status") == 1
        assert main(["status", "--url", url]) == 1

    out = capsys.readouterr().out
    assert out.count("0 of 1 ports found were ever up here") == 2


def test_its_json_is_the_agents_and_what_follows_from_it(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, ports=(view(up=False, errors={}),)):
        assert here.command("status", "--json") == 1

    told = json.loads(capsys.readouterr().out)
    assert told["node"] == "node17"
    assert told["ports"]["down"] == ["mlx5_0/1"]
    assert told["well"] is False
    assert told["wrong"] == [{"about": "mlx5_0/1", "said": "down"}]
    assert (told["planned"], told["blind"]) == ([], [])


def test_over_the_network_it_says_what_is_served_there(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, ports=(WELL, view(OTHER.port, up=False))) as (agent, url):
        agent.reasons = ["mlx5_1/1 was not read yet"]
        assert main(["status", "--url", url]) == 1

    out = capsys.readouterr().out
    assert out.startswith("2 things are wrong\n")
    assert "run `flapd status` on the node" in out
    assert "was not read yet" in out


def test_without_an_agent_it_could_not_find_out(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.command("status") == 3
    assert "no agent answers" in capsys.readouterr().err


def test_a_long_list_says_where_the_rest_is(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    ports = tuple(
        view(port(key=f"{number}/1", device=f"mlx5_{number}"), up=False) for number in range(30)
    )

    with agent_at(here, ports=ports):
        assert here.command("status") == 1

    out = capsys.readouterr().out
    assert "30 things are wrong" in out
    assert "and 10 more" in out
