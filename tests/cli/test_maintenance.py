"""`flapd maintenance` and `flapd repaired` against a real server."""

import json

import pytest

from flapd.cli.main import main
from flapd.core.fabric.view import Snapshot
from tests.cli.here import Here, agent_at
from tests.serve.parts import view


def test_planned_work_begins_is_shown_and_ends(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, ports=(view(),)):
        assert here.command("maintenance") == 0
        assert here.command("maintenance", "--for", "2h", "--reason", "new firmware") == 0
        assert here.command("maintenance", "--json") == 0
        assert here.command("maintenance", "--end") == 0

    none, table, *told = capsys.readouterr().out.split("\n", 2)
    assert none == "No planned work is in force."
    assert table.split() == ["port", "until", "reason"]
    shown, _, rest = told[0].partition("\n")
    assert shown.startswith("all ports")
    assert "new firmware" in shown
    answer, _, ended = rest.partition("\n}\n")
    assert json.loads(answer + "}")["maintenance"][0]["port"] is None
    assert ended == "No planned work is in force.\n"


def test_work_on_one_port_names_it(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, ports=(view(),)) as (agent, _):
        words = ("--for", "600", "--reason", "cable", "--port", "mlx5_0/1")
        assert here.command("maintenance", *words) == 0

    (planned,) = agent.shown.maintenance
    assert planned.key == view().port.key
    assert "mlx5_0/1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--for", "2h"], "--reason"),
        (["--reason", "x"], "--for"),
        (["--port", "mlx5_0/1"], "--for"),
        (["--for", "2h", "--reason", ""], "--reason"),
        (["--end", "--for", "2h"], "--end"),
        (["--for", "2h", "--reason", "x", "--port", "mlx9_9/1"], "there is no port mlx9_9/1"),
        (["--for", "0", "--reason", "x"], "--for: "),
    ],
)
def test_what_does_not_go_together_is_wrong_use(
    here: Here, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    with agent_at(here, ports=(view(),)) as (agent, _):
        assert here.command("maintenance", *words) == 2
        assert agent.shown == Snapshot(ports=agent.shown.ports, is_scouted=True)

    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


def test_a_repair_is_told_with_its_note(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, ports=(view(),)) as (agent, _):
        assert here.command("repaired", "mlx5_0/1", "--note", "new cable") == 0

    assert agent.repairs == [(view().port.key, "new cable")]
    assert "mlx5_0/1: noted as repaired" in capsys.readouterr().out


def test_a_repair_of_no_port_is_wrong_input(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, ports=(view(),)):
        assert here.command("repaired", "mlx9_9/1") == 2

    assert "mlx9_9/1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["maintenance"],
        ["maintenance", "--for", "2h", "--reason", "x"],
        ["repaired", "mlx5_0/1"],
        ["record", "-o", "x"],
    ],
)
def test_nothing_is_changed_over_the_network(
    capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    for option in ("--url=http://node17:19315", "--token-file=x"):
        assert main([*words, option]) == 2
        assert f"unrecognized arguments: {option}" in capsys.readouterr().err


def test_without_an_agent_nothing_is_noted(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.command("repaired", "mlx5_0/1") == 3
    assert "no agent answers" in capsys.readouterr().err
