"""`flapd cost`: the price of a flap, on the screen and as JSON."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from flapd.cli.main import main
from flapd.core.cost.calibration import Retry
from flapd.core.incident.view import IncidentsView
from flapd.model.given import Given
from tests.cli.here import WIDEST, Here, agent_at
from tests.serve.parts import view

FIELDS = {
    "inputs",
    "tick_seconds",
    "budget_seconds",
    "resume_seconds",
    "regime",
    "detect_seconds",
    "propagation_seconds",
    "restart_seconds",
    "rework_seconds",
    "lost_seconds",
    "gpu_seconds",
    "gpu_hours",
    "cost",
    "per_day",
    "per_month",
    "repeated",
    "calibrations",
}

Cost = Callable[..., str]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "flapd.toml"
    path.write_text("")
    return path


@pytest.fixture
def cost(config: Path, capsys: pytest.CaptureFixture[str]) -> Cost:
    """What the command prints, where it ends well."""

    def run(words: str) -> str:
        assert main(["cost", *words.split(), "--config", str(config)]) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def answer(cost: Cost) -> Callable[[str], dict[str, Any]]:
    def run(words: str) -> dict[str, Any]:
        found = json.loads(cost(f"{words} --json"))
        assert isinstance(found, dict)
        return found

    return run


Answer = Callable[[str], dict[str, Any]]


def test_every_step_of_the_derivation_is_shown_in_its_order(cost: Cost) -> None:
    out = cost("--gpus 1024 --down 60 --ib-timeout 20")

    steps = [
        "T = 4.096 us x 2^20",
        "4.294967 s",
        "B = 7 x T",
        "30.064771 s",
        "D = d ",
        "60.000000 s",
        "R = next multiple of T",
        "60.129542 s",
        "R > B",
        "transport_abort",
        "30.164771 s",
        "345.164771 s",
        "900.000000 s",
        "1,245.164771 s",
        "1,275,048.726 GPU-s",
        "354.1802 GPU-h",
        "885.45 USD",
    ]
    places = [out.index(step) for step in steps]
    assert places == sorted(places)


def test_the_screen_fits_a_terminal_and_tells_how_sure_it_is(cost: Cost) -> None:
    out = cost("--gpus 1024 --down 60 --ib-timeout 20 --every 1h")

    lines = out.splitlines()
    assert max(map(len, lines)) <= 100
    assert len(lines) <= 45
    assert "The real budget lies between 30.06 s and 137.44 s" in out
    assert "absorbed 54.9%, transport abort 45.1%" in out
    assert "rests on values nobody gave" in out


def test_deaths_that_come_again_are_told_by_both_models(cost: Cost) -> None:
    out = cost("--gpus 1024 --down 60 --every 1h")

    assert "24 a day" in out
    assert "21,250.81 USD a day" in out
    assert "1,424.8 s done again: it keeps 50.0% of" in out
    assert "at random, as often on average: it keeps 68.6% of its time" in out
    assert "445 s (Daly), 465 s (Young), beside the job's 1,800 s" in out
    assert "637,524.36 USD in 30 days" in out


def test_a_job_that_saves_as_seldom_as_it_dies_never_advances(cost: Cost) -> None:
    out = cost("--gpus 1024 --down 60 --every 1h --checkpoint-interval 1h")

    assert "never gets to a checkpoint and never advances" in out


def test_a_stall_has_no_checkpoints_to_talk_of(cost: Cost) -> None:
    assert "checkpoint every" not in cost("--gpus 1024 --down 2 --every 1h")


def test_several_durations_and_policies_make_a_table(cost: Cost) -> None:
    out = cost("--gpus 1024 --down 0.3,2,10,60 --ib-timeout 18,20,22 --every 1h")

    heading, *rows = out.splitlines()
    assert len(rows) == 12
    assert max(map(len, out.splitlines())) <= 100
    assert "retries" not in heading
    assert " ".join(rows[2].split()) == (
        "18 7.52 s 10 s transport abort 1,222.62 s 347.77 869.42 20,865.98 625,979 33.96%"
    )
    assert rows[-1].split()[-4:] == ["48.87", "1,172.81", "35,184", "1.91%"]


def test_what_varies_of_a_policy_has_a_column(cost: Cost) -> None:
    out = cost("--gpus 8 --down 60 --retry-cnt 3,7 --watchdog 10m,30m --ib-timeout 20")

    heading, *rows = out.splitlines()
    assert "retries" in heading
    assert "watchdog" in heading
    assert "timeout" not in heading
    assert len(rows) == 4


def test_json_has_the_fields_of_the_api_and_no_other(answer: Answer) -> None:
    found = answer("--gpus 1024 --down 2 --every 1h")

    assert set(found) == FIELDS
    assert found["regime"] == "absorbed"
    assert found["tick_seconds"] == pytest.approx(4.294967296)
    assert found["resume_seconds"] == found["lost_seconds"] == pytest.approx(4.294967296)
    assert found["detect_seconds"] is None
    assert found["gpu_seconds"] == pytest.approx(4398.046511)
    assert found["cost"] == {"likely": pytest.approx(3.0542, abs=1e-4), "currency": "USD"}
    assert set(found["per_day"]) == {"flaps", "gpu_seconds", "cost", "capacity_share"}
    assert found["per_day"]["capacity_share"] == pytest.approx(0.001193046)


def test_json_of_deaths_that_come_again_has_both_models(answer: Answer) -> None:
    found = answer(
        "--gpus 1024 --down 60 --every 1h --checkpoint-interval 10m --checkpoint-cost 10"
    )

    assert found["per_month"]["cost"] == pytest.approx(30 * found["per_day"]["cost"])
    again = found["repeated"]
    assert again["away_seconds"] == pytest.approx(345.164771)
    assert again["at_fixed_period"]["checkpoints"] == 5
    assert again["at_fixed_period"]["goodput"] == pytest.approx(0.8333, abs=1e-4)
    assert again["goodput_at_random"] == pytest.approx(0.82010, abs=1e-5)
    assert again["best"]["young_seconds"] == pytest.approx(268.328, abs=1e-3)
    assert again["best"]["daly_seconds"] == pytest.approx(261.703, abs=1e-3)
    assert again["best"]["goodput"] > again["goodput_at_random"]
    assert answer("--gpus 1024 --down 2 --every 1h")["repeated"] is None


def test_json_of_an_abort_has_no_resume_and_without_every_no_day(answer: Answer) -> None:
    found = answer("--gpus 1024 --down 60")

    assert found["resume_seconds"] is None
    assert found["detect_seconds"] == pytest.approx(30.164771)
    assert (found["propagation_seconds"], found["restart_seconds"]) == (15, 300)
    assert found["rework_seconds"] == 900
    assert found["per_day"] is None


def test_several_prices_are_a_list(answer: Answer) -> None:
    found = answer("--gpus 8 --down 2,60")

    assert found["next"] is None
    assert [set(item) for item in found["items"]] == [FIELDS, FIELDS]


def test_what_never_ends_is_null_and_no_number(answer: Answer, cost: Cost) -> None:
    words = "--gpus 8 --down 2 --hang --error-handling 0"
    found = answer(words)

    assert found["regime"] == "watchdog"
    assert found["lost_seconds"] is found["gpu_seconds"] is found["cost"] is None
    assert "endless" in cost(f"{words} --every 1h")
    assert "inf" not in cost(words)


def test_each_input_tells_where_it_is_from(answer: Answer, config: Path) -> None:
    config.write_text(
        """
        job = { world_size = 512, ib_timeout = 22, watchdog = "30m", checkpoint_interval = 600 }
        cost = { price_per_gpu_hour = 4, currency = "EUR" }
        """
    )

    found = answer("--down 2 --ib-timeout 18 --torch 2.8.0")

    known = {name: (one["value"], one["source"]) for name, one in found["inputs"].items()}
    assert known == known | {
        "gpus": (512, "configuration"),
        "down_seconds": (2, "option"),
        "ib_timeout": (18, "option"),
        "retry_cnt": (7, "default"),
        "watchdog_seconds": (1800, "configuration"),
        "propagation_seconds": (61, "version"),
        "checkpoint_age_seconds": (300, "configuration"),
        "price_per_gpu_hour": (4, "configuration"),
    }
    assert found["cost"]["currency"] == "EUR"


def test_an_option_is_over_the_configuration_and_that_over_a_preset(
    answer: Answer, config: Path
) -> None:
    config.write_text('job.restart = "7m"\njob.retry_schedule = "adaptive"')

    inputs = answer("--gpus 8 --down 2 --preset manual --propagation 3")["inputs"]

    assert inputs["propagation_seconds"]["value"] == 3
    assert inputs["restart_seconds"]["value"] == 420
    assert inputs["checkpoint_age_seconds"]["source"] == "preset"
    assert inputs["schedule"] == {
        "value": "adaptive",
        "low": "adaptive",
        "high": "adaptive",
        "source": "configuration",
    }


@pytest.mark.parametrize(
    ("words", "regime"),
    [
        ("--down 2", "absorbed"),
        ("--down 2 --slack 5", "hidden"),
        ("--down 2 --hang", "watchdog"),
        ("--down 60", "transport_abort"),
        ("--down 60 --uncoordinated", "watchdog"),
        ("--down 60 --nccl 2.18.1", "watchdog"),
        ("--down 60 --failover --slowdown 0.5", "failover"),
        ("--down 2 --ib-timeout 14", "transport_abort"),
        ("--down 2 --ib-timeout 14 --timer-floor 17", "absorbed"),
        ("--down 32 --first-try-counts", "absorbed"),
        ("--down 32 --budget-factor 2", "absorbed"),
        ("--down 29.8 --schedule adaptive", "transport_abort"),
        ("--down 550 --ib-timeout 25", "watchdog"),
        ("--down 500 --ib-timeout 25 --enqueued-before 200 --launcher torchrun", "watchdog"),
        ("--down 2 --usable-after 30", "transport_abort"),
    ],
)
def test_each_option_means_what_it_says_on_the_screen_and_in_json(
    words: str, regime: str, answer: Answer, cost: Cost
) -> None:
    assert answer(f"--gpus 1024 {words}")["regime"] == regime
    assert regime in cost(f"--gpus 1024 {words}")


@pytest.mark.parametrize(
    ("words", "right"),
    [
        ("--down 2", "--gpus W, the number of GPUs that stand still, or job.world_size is needed"),
        ("--gpus 8", "required: --down"),
        ("--gpus 0 --down 2", "a whole number from 1 to 10000000 would be right"),
        ("--gpus 8 --down x", "'x': a number of seconds or a string such as"),
        ("--gpus 8 --down 1,,2", "'': a number of seconds or a string such as"),
        (f"--gpus 8 --down {','.join('1' * 17)}", "at most 16 values at once"),
        ("--gpus 8 --down 2 --ib-timeout 65", "a whole number from 0 to 64 would be right"),
        ("--gpus 8 --down 2 --retry-cnt 8", "a whole number from 0 to 7 would be right"),
        ("--gpus 8 --down 2 --every 0", "one second or more would be right"),
        ("--gpus 8 --down 2 --price nan", "a number from 0 to 1e+06 would be right"),
        ("--gpus 8 --down 2 --price 1e999", "a number from 0 to 1e+06 would be right"),
        ("--gpus 8 --down 2 --slowdown 1.5", "a number from 0 to 1 would be right"),
        ("--gpus 8 --down 2 --nccl new", "a version such as 2.27.5 would be right"),
        ("--gpus 8 --down 2 --schedule odd", "invalid choice: 'odd'"),
    ],
)
def test_wrong_use_is_told_with_what_would_be_right(
    words: str, right: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main(["cost", *words.split(), "--config", str(config)])

    captured = capsys.readouterr()
    assert status == 2
    assert captured.out == ""
    assert right in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("job.world_size = 0", "a number of GPUs, 1 or more"),
        ('job.ib_timeout = "20"', "a whole number from 0 to 64; 0 and 32 or more: for ever"),
        ("job.ib_retry_cnt = 8", "a whole number from 0 to 7"),
        ("job.watchdog = 0", "at least 1s"),
        ("job.checkpoint_interval = 0", "at least 1s"),
        ('job.restart = "soon"', 'a number of seconds or a string such as "100ms", "2s"'),
        ('job.retry_schedule = "odd"', 'one of "auto", "fixed", "adaptive"'),
        ("job.timer_floor = 32", "a whole number from 0 to 31; 0: no floor"),
        ("job.budget_factor = 0", "a number above 0, up to 100, such as 1.1"),
        ("cost.price_per_gpu_hour = -1", "a price from 0 to 1000000, such as 2.5"),
        ("cost.price_per_gpu_hour = nan", "a price from 0 to 1000000, such as 2.5"),
        ('cost.currency = ""', 'a currency, such as "USD"'),
    ],
)
def test_a_wrong_setting_is_told_with_what_would_be_right(
    line: str, right: str, config: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(line)

    assert main(["cost", "--gpus", "8", "--down", "2", "--config", str(config)]) == 2
    told = capsys.readouterr().err
    assert told.startswith(f"flapd: {line.partition(' = ')[0]} = ")
    assert f": {right}" in told


def test_the_documentation_names_options_that_there_are(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = (Path(__file__).parents[2] / "docs" / "costing.md").read_text()
    named = set(re.findall(r"(?<!-)--[a-z][a-z-]+", text))

    for command in ("cost", "advise", "budget"):
        assert main([command, "--help"]) == 0
    known = set(re.findall(r"--[a-z][a-z-]+", capsys.readouterr().out))
    assert named
    assert named <= known


def test_it_needs_neither_an_agent_nor_its_libraries(config: Path) -> None:
    heavy = "{'aiohttp', 'asyncio', 'prometheus_client', 'sqlite3', 'structlog'}"
    code = (
        "import sys; from flapd.cli.main import main;"
        f"main(['cost', '--gpus', '8', '--down', '2', '--json', '--config', {str(config)!r}]);"
        f"print(sorted({heavy} & set(sys.modules)), file=sys.stderr)"
    )

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, text=True)

    assert (done.returncode, done.stderr) == (0, "[]\n")


def test_what_the_agent_of_this_node_measured_is_in_force_and_said(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    factor = Given(2.4, 2.35, 2.45, "calibrated")
    retry = Retry(20, 0, factor, ("f1", "f2", "f3"), contradicted=0)
    with agent_at(here, (), (view(),)) as (agent, _url):
        agent.shown = replace(agent.shown, incidents=IncidentsView(retries=(retry,)))
        assert here.command("cost", "--gpus", "8", "--down", "2", "--ib-timeout", "20") == 0
        told = capsys.readouterr().out
        assert here.command("cost", "--gpus", "8", "--down", "2", "--ib-timeout", "18") == 0
        other = capsys.readouterr().out

    assert "measured on this node (3 flaps)" in told
    assert "10.307922 s" in told
    assert max(map(len, told.splitlines())) <= WIDEST
    assert "measured on this node" not in other


def test_a_socket_that_nobody_answers_on_keeps_no_price_back(here: Here) -> None:
    (here.directory / "flapd.sock").touch()

    assert here.command("cost", "--gpus", "8", "--down", "2") == 0
