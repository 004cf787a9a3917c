"""`flapd incidents`, and what `flapd flaps` and `flapd status` tell of incidents."""

import json
import time
from typing import Any

import pytest
from msgspec.structs import replace

from flapd.core.fabric.view import Snapshot
from flapd.core.job.view import JobsView
from flapd.model.incident import Incident
from flapd.model.loss import Range
from flapd.model.times import SECOND_NS
from tests.cli.here import WIDEST, Here, agent_at, recent
from tests.serve.parts import view
from tests.store.jobs import cause, incident, job, stall


def lately(incident_id: str = "incident-1", **changes: Any) -> Incident:
    """It began a minute ago."""
    begin_ns = time.time_ns() - 60 * SECOND_NS
    fields = {"begin_unix_ns": begin_ns, "end_unix_ns": begin_ns + 5 * SECOND_NS}
    return replace(incident(incident_id), **{**fields, **changes})


def test_incidents_are_a_table_that_fits(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    told = (
        lately("incident-0123456789abcdef"),
        lately(
            "incident-fedcba9876543210",
            verdict="not_fabric",
            open=True,
            end_unix_ns=None,
            causes=(),
            regime=None,
            lost_seconds=None,
            gpu_seconds=None,
            cost=None,
            job=None,
        ),
        lately(
            "incident-00000000000000ff",
            job="a" * 40,
            regime="transport_abort",
            causes=tuple(cause(f"f{n}", port=f"rocep139s0f{n}/1") for n in range(3)),
            lost_seconds=Range(1.0, float("inf"), float("inf")),
            gpu_seconds=Range(1e9, 2e9, 3e9),
        ),
    )
    with agent_at(here) as (agent, _url):
        agent.happens(*told)
        assert here.command("incidents") == 0

    out, err = capsys.readouterr()
    assert err == ""
    for words in ("incident-0123456789abcdef", "caused", "98.0 %", "4,506 GPU-s", "3.13 USD"):
        assert words in out
    for words in ("not fabric", "goes on", "not known", "endless", "2,000,000,000 GPU-s"):
        assert words in out
    assert max(map(len, out.splitlines())) <= WIDEST
    assert "\x1b" not in out


def test_none_is_said_in_a_sentence(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here) as (agent, _url):
        agent.happens(incident("years ago"))
        assert here.command("incidents") == 0

    assert capsys.readouterr().out.startswith("No incidents:")


def test_filters_reach_the_agent(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, (recent("flap-s"), recent("flap-l"))) as (agent, _url):
        agent.happens(
            lately("i1", causes=(cause("flap-s"),)),
            lately("i2", verdict="unknown", job="4712", causes=(cause("flap-l", port="mlx5_1/1"),)),
        )
        found = []
        for words in (
            ["--verdict", "caused"],
            ["--job", "4712"],
            ["--port", "mlx5_1/1"],
            ["--status", "open"],
            ["--cause", "link", "--min-down", "100ms", "--regime", "absorbed", "--limit", "1"],
        ):
            assert here.command("incidents", "--json", *words) == 0
            items = json.loads(capsys.readouterr().out)["items"]
            found.append([item["id"] for item in items])

    assert found[:4] == [["i1"], ["i2"], ["i2"], []]
    assert len(found[4]) == 1


@pytest.mark.parametrize(
    "words", [["--since", "x"], ["--verdict", "guilty"], ["--status", "lost"], ["--node", "n2"]]
)
def test_a_wrong_filter_is_wrong_input(
    here: Here, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with agent_at(here):
        assert here.command("incidents", *words) == 2

    assert capsys.readouterr().err.startswith(f"flapd: {words[0]}: ")


def test_who_may_not_see_jobs_is_told_which_key_opens_them(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here) as (_agent, url):
        assert here.command("incidents", "--url", url) == 3
        assert here.command("why", "--url", url) == 3

    out, err = capsys.readouterr()
    assert out == ""
    assert "http.open" in err


def test_flaps_tell_what_they_cost(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, (recent("flap-1"), recent("flap-2"))) as (agent, _url):
        loss = {"flap-1": Range(4403.2, 4505.6, 4608.0)}
        agent.happens(lately("i1", causes=(cause("flap-1"),), flap_gpu_seconds=loss))
        assert here.command("flaps") == 0
        assert here.command("flaps", "flap-1") == 0
        assert here.command("flaps", "--job", "4711", "--json") == 0

    table, _, rest = capsys.readouterr().out.partition("flap-1: mlx5_0/1")
    one, _, listed = rest.partition("{")
    assert table.count("4,506 GPU-s lost") == 1
    assert "incidents   i1" in one
    assert "4,506 GPU-s (4,403 to 4,608)" in one
    assert '"flap-1"' in listed
    assert '"flap-2"' not in listed


def test_status_tells_of_jobs_and_of_incidents_that_go_on(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (), (view(),)) as (agent, _url):
        agent.happens(
            lately("incident-1", open=True, end_unix_ns=None, verdict="likely"),
            lately("incident-2", open=True, end_unix_ns=None, verdict="coincident"),
            lately("incident-3"),
        )
        running = job(blind_to=("its log is a pipe",))
        agent.shown = Snapshot(
            ports=(view(),),
            is_scouted=True,
            jobs=JobsView(running=(running,), stalls=(stall(end=None),)),
        )
        assert here.command("status") == 1
        told = capsys.readouterr().out
        assert here.command("status", "--json") == 1
        machine = json.loads(capsys.readouterr().out)

    assert "4711 (training, 1,024 ranks, 8 of them here, ITS TRAFFIC STANDS STILL)" in told
    assert "2 go on: " in told
    assert "see `flapd why incident-1`" in told
    assert "see `flapd why incident-2`" not in told
    assert "its log is a pipe" in told
    assert max(map(len, told.splitlines())) <= WIDEST
    assert machine["jobs"]["running"][0]["stands_still"] is True
    assert [one["id"] for one in machine["jobs"]["incidents"]] == ["incident-2", "incident-1"]


def test_status_without_jobs_says_so(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, (), (view(),)):
        assert here.command("status") == 0

    out = capsys.readouterr().out
    assert "none is seen here" in out
    assert "none goes on" in out
