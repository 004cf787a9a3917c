"""`flapd budget`: projected against measured step time, and the links' part in between."""

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from flapd.cli.main import main
from flapd.model.times import SECOND_NS
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.serve.parts import view
from tests.store.jobs import cause, incident

MODEL = ("--params", "70B", "--tokens", "4194304")
WORDS = (*MODEL, "--gpus", "1024", "--peak", "989T", "--mfu", "0.4")
MEGATRON = (
    " iteration {n}/ 1000 | consumed samples: 1 | elapsed time per iteration (ms): {ms} | "
    "learning rate: 1.0E-04 | global batch size: 1024 |"
)


@pytest.fixture
def alone(here: Here) -> Here:
    """A node without an agent."""
    return here


def test_the_projection_is_worked_out_without_an_agent(
    alone: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert alone.command("budget", *WORDS, "--measured", "7.247725") == 0

    captured = capsys.readouterr()
    assert max(map(len, captured.out.splitlines())) <= WIDEST
    assert "4.348635 s" in captured.out
    assert "2.899090 s" in captured.out
    assert "60.0% of the projected speed, MFU 0.240" in captured.out
    assert "What flaps and stalls took is not known" in captured.out
    assert "no agent answers" in captured.err
    for metric in ("data-loader wait", "SM_ACTIVE", "DRAM_ACTIVE", "NCCL kernels"):
        assert metric in captured.out


def test_the_json_has_null_for_what_nobody_told(
    alone: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert alone.command("budget", *WORDS, "--json") == 0

    found = json.loads(capsys.readouterr().out)
    assert found["projected_seconds"] == pytest.approx(4.348635, abs=1e-6)
    assert found["measured_seconds"] is found["gap"] is found["fabric"] is None
    assert len(found["unseen"]) >= 6


def test_the_flaps_of_an_agent_explain_their_part(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    flaps = tuple(recent(f"f{n}", 60 * (n + 1)) for n in range(24))
    with agent_at(here, flaps, (view(),)):
        assert here.command("budget", *WORDS, "--measured", "7.247725", "--json") == 0
        found = json.loads(capsys.readouterr().out)
        assert here.command("budget", *WORDS, "--measured", "7.247725") == 0

    assert found["fabric"]["waited"]["flaps"] == 24
    per_step = 7.247725 * 24 * 4.294967296 / 86_400
    assert found["gap"]["fabric_seconds"] == pytest.approx(per_step, rel=1e-3)
    out = " ".join(capsys.readouterr().out.split())
    assert "ports flapped 24 times: 103.1 s of standing still" in out
    assert "Not a link of this node: flaps there explain 0.3% of the gap." in out


def test_the_part_of_one_job_is_asked_for_by_its_name(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent("f1"), recent("f2")), (view(),)) as (agent, _url):
        agent.happens(incident("i1", 1, job="4711", causes=(cause("f1"),)))
        assert here.command("budget", *WORDS, "--job", "4711", "--json") == 0

    assert json.loads(capsys.readouterr().out)["fabric"]["waited"]["flaps"] == 1


def test_a_job_that_is_as_fast_as_projected_has_no_gap(
    alone: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert alone.command("budget", *WORDS, "--measured", "4") == 0

    assert "there is no gap to explain" in capsys.readouterr().out


def test_step_times_come_from_the_log_of_the_training(
    alone: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    lines = [MEGATRON.format(n=n, ms=7000.0 + 10 * n) for n in range(1, 10)]
    log.write_text("\n".join(lines) + "\n")

    assert alone.command("budget", *WORDS, "--log", str(log), "--json") == 0

    found = json.loads(capsys.readouterr().out)
    assert found["measured_seconds"] == pytest.approx(7.05)
    assert found["step_times"]["all"]["steps"] == 9
    assert found["step_times"]["by_rank"] == {}


def test_the_spread_over_ranks_is_shown_where_each_prints_its_steps(
    alone: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "train.log"
    lines = [
        f"[1,{rank}]<stdout>:" + MEGATRON.format(n=n, ms=7000.0 + 1000 * (rank == 3))
        for n in range(1, 6)
        for rank in range(4)
    ]
    log.write_text("\n".join(lines) + "\n")

    assert alone.command("budget", *WORDS, "--log", str(log)) == 0

    out = capsys.readouterr().out
    rows = [row.split() for row in out.splitlines() if row[:2] in ("3 ", "0 ")]
    assert [row[0] for row in rows] == ["3", "0"]
    assert rows[0][4] == "8.000000"


def test_a_log_without_step_times_says_so(
    alone: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "train.log").write_text("hello\n")

    assert alone.command("budget", *WORDS, "--log", str(tmp_path / "train.log")) == 0

    captured = capsys.readouterr()
    assert "no step time was found in the logs" in captured.err
    assert "No step time is known" in captured.out


def test_deaths_are_told_apart_from_what_lengthens_steps(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    dead = recent("f1")
    up = replace(
        dead.down,
        earliest_ns=dead.down.latest_ns + 50 * SECOND_NS,
        latest_ns=dead.down.latest_ns + 50 * SECOND_NS,
    )
    long = replace(dead, up=up, down_ns_min=50 * SECOND_NS, down_ns_max=50 * SECOND_NS)
    with agent_at(here, (long,), (view(),)):
        assert here.command("budget", *WORDS, "--measured", "7.2") == 0

    assert "Of these 1 outlasted the retry budget" in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("--params 70Q --tokens 1 --gpus 8 --peak 1T --mfu 0.4", "argument --params"),
        ("--params 1B --tokens 1 --gpus 8 --peak 1T --mfu 2", "a number from 0.0001 to 1"),
        ("--params 1B --tokens 1 --gpus 8 --peak 1T", "required: --mfu"),
        ("--params 1B --tokens 1 --peak 1T --mfu 0.4", "--gpus W, the number of GPUs"),
        ("--params 1B --tokens 1 --gpus 8 --peak 1T --mfu 0.4 --measured 0", "a millisecond"),
        ("--params nanB --tokens 1 --gpus 8 --peak 1T --mfu 0.4", "argument --params"),
    ],
)
def test_wrong_use_is_told_with_what_would_be_right(
    words: str, right: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["budget", *words.split()]) == 2
    assert right in capsys.readouterr().err


def test_a_named_agent_that_does_not_answer_is_an_error(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["budget", *WORDS, "--url", "http://127.0.0.1:9"]) == 3
    assert "no agent answers" in capsys.readouterr().err
