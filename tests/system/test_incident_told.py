"""From what a node's agent reads of a simulated job to what its user reads of the incident."""

import json
import math
from pathlib import Path

import pytest

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.event import Event
from flapd.serve.agent import Health
from flapd.serve.metrics import Scrape, render
from simulators.job.happenings import Outage
from simulators.job.job import simulate
from simulators.job.record import Run
from simulators.job.spec import JobSpec, Software, Transport
from tests.cli.here import Here, agent_at
from tests.system.replayed import Seen, observations

AT = 420.0
PORT = 3
SINCE = "2020-01-01T00:00:00Z"


def flapped(down_seconds: float) -> Run:
    """A job of 32 GPUs with an InfiniBand port that went down, under the defaults of NCCL 2.27."""
    return simulate(
        JobSpec(
            seed=7,
            nodes=4,
            link_layer="InfiniBand",
            restarts=0,
            duration_seconds=AT + 250.0,
            transport=Transport(),
            software=Software(torch="2.8.0", nccl="2.27.3", nccl_debug="WARN"),
            happenings=(Outage(AT, down_seconds, node=0, port=PORT),),
        )
    )


def told(run: Run) -> tuple[Engine, list[Event]]:
    ended = run.attempts[-1].end is not None
    end = run.truth.end + (150.0 if ended else 0.0)
    seen = Seen(0, AT - 120.0, end, has_log=True, ports_are_known=True, seed=7)
    engine = Engine("node000", FlapSettings())
    return engine, [event for one in observations(run, seen) for event in engine.step(one)]


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


def test_a_flap_that_was_waited_out_is_told_with_its_price(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, events = told(flapped(2.0))

    with agent_at(here) as (agent, _url):
        agent.happens(*events)
        agent.shown = engine.snapshot()
        capsys.readouterr()  # the server's own log
        assert here.command("why", "--utc") == 0
        account = capsys.readouterr().out
        assert here.command("incidents", "--since", SINCE, "--json") == 0
        (incident,) = json.loads(capsys.readouterr().out)["items"]
        assert here.command("flaps", "--since", SINCE, "--job", incident["job"], "--json") == 0
        (flap,) = json.loads(capsys.readouterr().out)["items"]
        assert here.command("status") == 0
        assert f"{incident['job']} (training, 32 ranks, 8 of them here)" in capsys.readouterr().out

    assert account.startswith(f"{incident['id']}: caused by mlx5_{PORT}/1")
    assert len(account.splitlines()) <= 40
    assert (incident["verdict"], incident["regime"]) == ("caused", "absorbed")
    assert incident["causes"][0]["flap"] == flap["id"]
    assert flap["incidents"] == [incident["id"]]
    assert flap["gpu_seconds"]["likely"] == pytest.approx(incident["gpu_seconds"]["likely"])
    metrics = render(Scrape(engine.snapshot(), Health(), 0, 0), "")[0].decode()
    assert 'flapd_incidents_total{verdict="caused"} 1.0' in metrics
    claimed = f'claimed_total{{device="mlx5_{PORT}",port="1",regime="absorbed"}} '
    assert math.isclose(
        float(metrics.partition(claimed)[2].split()[0]), flap["gpu_seconds"]["likely"]
    )


def test_a_death_is_told_with_its_first_error_and_what_would_have_helped(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    engine, events = told(flapped(150.0))

    with agent_at(here) as (agent, _url):
        agent.happens(*events)
        agent.shown = engine.snapshot()
        capsys.readouterr()  # the server's own log
        assert here.command("why", "--utc") == 0
        account = " ".join(capsys.readouterr().out.split())
        assert here.command("incidents", "--since", SINCE, "--verdict", "caused", "--json") == 0
        (incident,) = json.loads(capsys.readouterr().out)["items"]

    assert incident["regime"] == "transport_abort"
    assert "first error" in account
    assert "transport error" in account
    assert f"goes down flap-{incident['causes'][0]['flap'].removeprefix('flap-')}" in account
    assert "NCCL_IB_TIMEOUT" in account.rpartition(" do ")[2]
