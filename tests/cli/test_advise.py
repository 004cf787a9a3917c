"""`flapd advise`: which timeout, which drain, by an agent's history or by a file."""

import json
import math
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from flapd.cli.main import main
from flapd.model.given import exactly
from flapd.model.job import Job
from flapd.model.times import SECOND_NS
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.serve.parts import port, view

Advise = Callable[..., str]

S1 = ["0.3"] * 70 + ["2s"] * 20 + ["10"] * 8 + ["1m"] * 2


@pytest.fixture
def advise(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Advise:
    """What it prints of durations in a file."""

    def run(lines: list[str], words: str = "") -> str:
        file, config = tmp_path / "durations", tmp_path / "flapd.toml"
        file.write_text("\n".join(lines))
        config.write_text("")
        status = main(["advise", "--durations", str(file), "--config", str(config), *words.split()])
        assert status == 0
        return capsys.readouterr().out

    return run


def test_the_best_timeout_of_a_known_distribution_is_found_with_its_margin(
    advise: Advise,
) -> None:
    found = json.loads(advise(S1, "--json"))

    best = found["timeout"]["best"]
    assert (best["ib_timeout"], best["retry_cnt"]) == (21, 7)
    assert best["expected_seconds"] == pytest.approx(10.308, abs=1e-3)
    assert found["timeout"]["in_force"]["expected_seconds"] == pytest.approx(29.800, abs=1e-3)
    assert found["timeout"]["margin_seconds"] == pytest.approx(0.13, abs=1e-2)
    assert len(found["timeout"]["policies"]) == 63
    assert found["draining"] is None
    assert found["inputs"]["gpus"]["source"] == "default"


def test_the_screen_shows_the_flaps_the_policies_and_the_reasons(advise: Advise) -> None:
    out = advise(S1, "--gpus 1024")

    assert max(map(len, out.splitlines())) <= WIDEST
    rows = {row.split()[0]: row.split() for row in out.splitlines() if row.startswith("     ")}
    assert rows["21"][-1] == "10.31"
    assert rows["17"][-1] == "122.69"
    assert "half of them up to 0.30 s, nine in ten up to 2.00 s, the longest 60.00 s" in plain(out)
    assert "NCCL_IB_TIMEOUT=21 with NCCL_IB_RETRY_CNT=7 would have cost least: 10.31 s" in plain(
        out
    )
    assert "0.13 s to spare, which is little. Timeout 22 retries for 120.26 s" in plain(out)
    assert "A planned drain costs 337,920 GPU-s" in out


def plain(text: str) -> str:
    """Without the breaks of lines."""
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("words", "timeout", "fewest"),
    [
        ("", 21, 7),
        ("--schedule adaptive", 23, 2),
        ("--preset in-process", 19, 5),
        ("--usable-after 5", 22, 4),
    ],
)
def test_the_best_follows_what_a_death_costs_and_how_retries_go(
    words: str, timeout: int, fewest: int, advise: Advise
) -> None:
    found = json.loads(advise(S1, f"{words} --json"))["timeout"]

    assert (found["best"]["ib_timeout"], found["fewest_retries"]) == (timeout, fewest)


def test_an_outage_that_was_not_seen_to_its_end_counts_as_a_longer_one(advise: Advise) -> None:
    out = advise(["0.3", "2", "# a remark", "", "12 +", "50 # of node17"])

    assert "1 of them lasted longer than was seen" in out


def test_few_outages_are_called_few(advise: Advise) -> None:
    assert "3 outages are few: take it as a hint" in plain(advise(["0.3", "2", "2"]))


def test_the_timeout_in_force_is_kept_where_it_is_the_best(advise: Advise) -> None:
    out = advise(["0.3"] * 90 + ["2"] * 10, "--ib-timeout 17")

    assert "Keep timeout 17 with 7 retries (option)" in plain(out)


def test_a_job_that_nothing_ends_costs_without_end_and_is_no_number(advise: Advise) -> None:
    words = "--gpus 8 --hang --error-handling 0"

    found = json.loads(advise(["2"], f"{words} --json"))

    assert found["timeout"]["best"]["expected_seconds"] is None
    assert "nan" not in advise(["2"], words)


@pytest.mark.parametrize(
    ("line", "right"),
    [
        ("soon", "line 2: 'soon': a number of seconds or a string such as"),
        ("-3", "line 2: '-3'"),
        ("1e400", "line 2: '1e400'"),
        ("nan", "line 2: 'nan'"),
        ("\x1b[31m2", "line 2: "),
    ],
)
def test_a_line_that_is_no_duration_is_named(
    line: str, right: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "durations"
    file.write_text(f"0.3\n{line}\n")

    assert main(["advise", "--durations", str(file)]) == 2
    told = capsys.readouterr().err
    assert right in told
    assert "\x1b" not in told


@pytest.mark.parametrize("content", ['{"items": 3}', "[[[[", '{"items": [{}]}', "[" * 100_000])
def test_json_that_is_not_of_flaps_is_wrong_input(
    content: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "flaps.json"
    file.write_text(content)

    assert main(["advise", "--durations", str(file)]) == 2
    assert "what `flapd flaps --json` prints would be right" in capsys.readouterr().err


def test_nothing_to_go_by_is_no_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").write_text("# nothing\n")

    assert main(["advise", "--durations", str(tmp_path / "empty")]) == 3
    assert "no outage whose length is known" in capsys.readouterr().err


def eight_ports() -> tuple[Any, ...]:
    return tuple(
        view(port(key=f"{n}", device=f"mlx5_{n}", guid=f"0002:c903:0000:000{n}")) for n in range(8)
    )


def test_the_history_of_an_agent_tells_what_to_drain(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    outages = tuple(shifted(recent(f"f{n}", port="mlx5_3/1", key="3"), 3600 * n) for n in range(20))
    shared = tuple(shifted(recent(f"s{n}", port=f"mlx5_{n}/1", key=str(n)), 1800) for n in range(8))
    planned = (shifted(recent("p", cause="admin"), 7200),)
    with agent_at(here, (*outages, *shared, *planned), eight_ports()):
        status = here.command("advise", "--gpus", "1024", "--remaining", "30d", "--json")

    assert status == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["outages"]["outages"]) == 28
    assert found["left_out"] == {"admin": 1}
    worst = found["draining"]["ports"][0]
    assert (worst["port"], worst["flaps"], worst["shared"]) == ("mlx5_3/1", 20, 1)
    assert worst["per_hour"] == pytest.approx(20 / 24)
    assert [one["flaps"] for one in found["draining"]["ports"][1:]] == [0] * 7


def test_all_ports_of_a_fleet_are_known_not_those_of_one_page(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    """A thousand of 1,200 went down together: as many as one page has, and not all."""
    many = tuple(
        view(port(key=f"{n}", device=f"mlx5_{n:04}", guid=f"0002:c903:0000:{n:04x}"))
        for n in range(1200)
    )
    together = tuple(
        shifted(recent(f"s{n}", port=f"mlx5_{n:04}/1", key=f"{n}"), 1800) for n in range(1000)
    )
    with agent_at(here, together, many):
        assert here.command("advise", "--gpus", "1024", "--json") == 0

    ports = json.loads(capsys.readouterr().out)["draining"]["ports"]
    assert {one["shared"] for one in ports} == {0}, "some ports of the node stayed up"


def shifted(outage: Any, seconds: int) -> Any:
    """The same, so long ago."""
    return replace(
        outage,
        down=ago(outage.down, seconds),
        up=ago(outage.up, seconds),
    )


def ago(edge: Any, seconds: int) -> Any:
    by_ns = seconds * SECOND_NS
    return replace(edge, earliest_ns=edge.earliest_ns - by_ns, latest_ns=edge.latest_ns - by_ns)


def test_the_answer_of_an_agent_is_the_same_from_a_file(
    here: Here, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outages = tuple(shifted(recent(f"f{n}"), 3600 * n) for n in range(12))
    with agent_at(here, outages, (view(),)):
        assert here.command("flaps", "--json", "--since", "7d") == 0
        (tmp_path / "flaps.json").write_text(capsys.readouterr().out)
        assert here.command("advise", "--json") == 0
        by_agent = json.loads(capsys.readouterr().out)

    assert here.command("advise", "--json", "--durations", str(tmp_path / "flaps.json")) == 0
    by_file = json.loads(capsys.readouterr().out)
    assert by_file["timeout"] == by_agent["timeout"]
    assert by_file["outages"] == by_agent["outages"]


def test_without_an_agent_and_a_file_nobody_can_tell(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.command("advise") == 3
    assert "no agent answers" in capsys.readouterr().err


def job(name: str, **changes: Any) -> Job:
    fields: dict[str, Any] = {
        "id": f"job-{name}",
        "revision": 1,
        "node": "node17",
        "job": name,
        "kind": "training",
        "world_size": exactly(512, "environment"),
        "local_ranks": (0,),
        "gpus": 8,
        "ports": {},
        "since_unix_ns": time.time_ns() - 3600 * SECOND_NS,
        "until_unix_ns": None,
        "policy": {
            "ib_timeout": exactly(22, "environment"),
            "watchdog_seconds": exactly(math.inf, "environment"),
            "heartbeat_seconds": exactly(480.0, "version"),
        },
    }
    return Job(**{**fields, **changes})


def inputs_by(here: Here, capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    assert here.command("advise", "--json", *words) == 0
    found = json.loads(capsys.readouterr().out)
    inputs = {name: (one["value"], one["source"]) for name, one in found["inputs"].items()}
    return {"job": found["job"], **inputs}


def test_the_timeouts_in_force_are_those_of_the_job_that_runs(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent(),), (view(),)) as (agent, _url):
        agent.happens(job("4711"), job("4710", until_unix_ns=time.time_ns(), policy={}))
        found = inputs_by(here, capsys)
        said = inputs_by(here, capsys, "--ib-timeout", "18", "--gpus", "64")

    assert found == found | {
        "job": "4711",
        "gpus": (512, "environment"),
        "ib_timeout": (22, "environment"),
        "watchdog_seconds": (None, "environment"),
        "retry_cnt": (7, "default"),
    }
    assert said == said | {"ib_timeout": (18, "option"), "gpus": (64, "option")}


def test_of_several_jobs_one_has_to_be_named(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent(),), (view(),)) as (agent, _url):
        agent.happens(job("4711"), job("4712"))
        assert here.command("advise", "--json") == 0
        captured = capsys.readouterr()
        named = inputs_by(here, capsys, "--job", "4712")
        assert here.command("advise", "--job", "no-such") == 2

    assert json.loads(captured.out)["job"] is None
    assert "2 jobs run here: --job J says whose timeouts to go by" in captured.err
    assert named["job"] == "4712"
    assert "--job no-such: no such job is known" in capsys.readouterr().err


def test_who_may_not_see_jobs_is_advised_all_the_same(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent(),), (view(),), listen="127.0.0.1:0") as (agent, url):
        agent.happens(job("4711"))
        assert here.command("advise", "--json", "--url", url) == 0

    captured = capsys.readouterr()
    assert json.loads(captured.out)["job"] is None
    assert "whose timeouts are in force is not known" in captured.err
