"""Commands that ask a hub: each port with its node, and what is silent is nothing that is well."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from flapd.cli.main import main
from flapd.cli.target import url_target
from flapd.cli.watch_feed import look_at_all
from flapd.model.times import SECOND_NS
from flapd.serve.hub.routes import hub_app
from flapd.serve.server import Server
from flapd.serve.settings import HttpSettings, Prices
from tests.cli.here import WIDEST
from tests.serve.hub.fake_hub import FakeHub, beat, port
from tests.store.jobs import cause, incident, job, stall
from tests.store.outages import WALL_NS, outage

NOW = (time.time_ns() - WALL_NS) // SECOND_NS


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    found = FakeHub(tmp_path)
    yield found
    found.close()


@pytest.fixture
def url(hub: FakeHub, tmp_path: Path) -> Iterator[str]:
    started: Future[str] = Future()
    ended = threading.Event()

    async def serve() -> None:
        settings = HttpSettings("127.0.0.1:0", open=True)
        server = Server(hub_app(hub, 1, Prices()), settings, tmp_path / "hub.sock")
        await server.start()
        assert server.tcp_address is not None
        started.set_result(f"http://127.0.0.1:{server.tcp_address[1]}")
        await asyncio.to_thread(ended.wait)
        await server.stop()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    yield started.result(20)
    ended.set()
    thread.join()


Out = pytest.CaptureFixture[str]


def test_status_says_which_nodes_are_not_healthy(hub: FakeHub, url: str, capsys: Out) -> None:
    hub.hears(beat("node1"))
    assert main(["status", "--url", url]) == 0
    assert "all is well" in capsys.readouterr().out

    hub.hears(beat("node2", port(up=False)))
    hub.hears(beat("node3"), ago_seconds=100)
    assert main(["status", "--url", url]) == 1

    out = capsys.readouterr().out
    assert "1 nodes unhealthy, 1 silent" in out
    assert "node2            unhealthy: mlx5_0/1 is down." in out
    assert "node3            unknown: Nothing was heard" in out
    assert "1 of 2 up, 1 down" in out


def test_status_says_that_a_hub_does_not_know_all(hub: FakeHub, url: str, capsys: Out) -> None:
    hub.consuming.connected, hub.consuming.reason = False, "nats://a: gone"

    assert main(["status", "--url", url]) == 1

    out = capsys.readouterr().out
    assert "not all of it is known" in out
    assert "NOT CONNECTED: nats://a: gone" in out


def test_flaps_ports_and_incidents_name_the_node(hub: FakeHub, url: str, capsys: Out) -> None:
    hub.hears(beat("node1"))
    hub.happens(
        outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58),
        stall(node="node2", begin=NOW - 60, end=NOW - 50),
        incident(
            node="node1",
            nodes=("node1", "node2"),
            causes=(cause("flap-1", node="node1"),),
            begin=NOW - 60,
            end=NOW - 50,
        ),
    )

    for command in ("flaps", "ports", "incidents", "why"):
        assert main([command, "--url", url]) == 0
        assert "node1 mlx5_0/1" in " ".join(capsys.readouterr().out.split()), command
    assert main(["flaps", "--url", url, "--node", "node2"]) == 0
    assert "No flaps" in capsys.readouterr().out


def test_what_one_switch_did_is_told_of_the_switch_and_of_no_cable(
    hub: FakeHub, url: str, capsys: Out
) -> None:
    flaps = [outage(f"flap-{n}", node=f"node{n}", down=NOW - 60, up=NOW - 58) for n in range(3)]
    hub.happens(
        *flaps,
        incident(
            nodes=("node0", "node1", "node2"),
            shared_cause="leaf-1: 3 ports of 3 nodes within 0.0 s",
            causes=tuple(cause(f"flap-{n}", node=f"node{n}", probability=0.32) for n in range(3)),
            begin=NOW - 60,
            end=NOW - 50,
        ),
    )

    assert main(["why", "--url", url]) == 0
    told = capsys.readouterr().out
    assert "caused by leaf-1: 3 ports of 3 nodes within 0.0 s, job 4711" in told
    assert "verdict      leaf-1: 3 ports of 3 nodes within 0.0 s, with 96" in told
    assert main(["incidents", "--url", url]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "leaf-1: 3 ports" in told
    assert "96" in told
    assert "node1" not in told


def test_an_outage_that_no_job_used_is_among_the_evidence_of_its_incident(
    hub: FakeHub, url: str, capsys: Out
) -> None:
    alone: dict[str, Any] = {"job": None, "verdict": "no_job", "causes": (), "symptoms": ()}
    told = incident(nodes=("node1",), flaps=("flap-1",), begin=NOW - 60, end=NOW - 50, **alone)
    hub.happens(outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58), told)

    assert main(["why", "--url", url]) == 0
    assert "node1 mlx5_0/1 goes down flap-1" in " ".join(capsys.readouterr().out.split())
    assert main(["flaps", "--url", url, "--json"]) == 0
    (flap,) = json.loads(capsys.readouterr().out)["items"]
    assert flap["incidents"] == [told.id]


def test_what_is_watched_names_the_node(hub: FakeHub, url: str) -> None:
    hub.hears(beat("node1"))
    hub.happens(outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58))

    seen = look_at_all([url_target(url)])

    assert [port.port for port in seen.now.listed.items] == ["node1 mlx5_0/1"]
    assert [flap.port for flap in seen.flaps or ()] == ["node1 mlx5_0/1"]


MODEL = ("--params", "70B", "--tokens", "4194304", "--peak", "989T", "--mfu", "0.4")
BUDGET = ("budget", *MODEL, "--gpus", "1024", "--measured", "7.25")


def test_a_budget_is_of_all_nodes_of_a_job_and_says_what_is_not_seen(
    hub: FakeHub, url: str, capsys: Out
) -> None:
    hub.hears(beat("node1"), beat("node2"))
    hub.hears(beat("node3"), ago_seconds=100)
    nodes = ("node1", "node2", "node3")
    hub.happens(*(job(f"job-{node}", node=node, since=NOW - 86_400) for node in nodes))
    hub.happens(
        outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58),
        stall("s1", node="node1", begin=NOW - 60, end=NOW - 50),
        stall("s2", node="node2", begin=NOW - 60, end=NOW - 50, stall_class="remote"),
        incident(nodes=nodes, causes=(cause("flap-1", node="node1"),), begin=NOW - 60),
    )

    assert main([*BUDGET, "--url", url]) == 0

    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDEST
    told = " ".join(out.split())
    for sentence in (
        "by 3 nodes' links",
        "of it flaps 0.000839 s as measured in traffic",
        "retransmissions not seen a hub hears of none: ask each node's agent",
        "Not a link of the nodes that tell of job 4711: flaps there explain 0.0% of the gap.",
        "In 24.0 h 3 nodes' ports flapped 1 times",
        "24 of 1,024 GPUs are on nodes that told of job 4711: of the links of the others nothing",
        "Nothing is heard now of node3: what flapped there since is not in it.",
        "http://NODE:19315",
    ):
        assert sentence in told, sentence
    assert "links of other nodes" not in told

    assert main([*BUDGET, "--url", url, "--job", "4711", "--node", "node2"]) == 0
    assert "In 24.0 h one node's ports flapped 0 times" in " ".join(capsys.readouterr().out.split())


def test_a_budget_of_a_job_that_is_not_said_or_not_known_is_wrong_input(
    hub: FakeHub, url: str, capsys: Out
) -> None:
    hub.hears(beat("node1"), beat("node2", jobs=("4712",)))

    assert main([*BUDGET, "--url", url]) == 2
    said = "--job: the id of a job is needed at a hub; running now: 4711, 4712"
    assert said in capsys.readouterr().err
    assert main([*BUDGET, "--url", url, "--job", "4713"]) == 2
    assert "no node tells of job 4713 in that time" in capsys.readouterr().err


def test_the_samples_around_an_outage_are_at_its_node(hub: FakeHub, url: str, capsys: Out) -> None:
    hub.happens(outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58))

    assert main(["flaps", "flap-1", "--url", url]) == 0

    out = " ".join(capsys.readouterr().out.split())
    assert out.startswith("flap-1: node1 mlx5_0/1, flap, closed")
    assert "stay with its node: flapd flaps flap-1 --url http://node1:19315" in out


def test_ports_are_shown_up_or_down_and_those_of_one_node_alone(
    hub: FakeHub, url: str, capsys: Out
) -> None:
    down = port(up=False, link_layer="InfiniBand", witness="saturated")
    hub.hears(beat("node1"), beat("node2", down))

    assert main(["ports", "--url", url]) == 0
    both = capsys.readouterr()
    assert main(["ports", "--url", url, "--node", "node2"]) == 0
    one = capsys.readouterr().out

    rows = {row.split()[0]: row.split() for row in both.out.splitlines() if row.startswith("node")}
    assert ("up" in rows["node1"], "down" in rows["node2"]) == (True, True)
    assert "counts" in rows["node1"]
    assert "InfiniBand" in rows["node2"]
    assert "at its stop" in one
    assert "node1" not in one
    assert "there are more" not in both.err
    assert main(["ports", "--url", url, "--node", "node3"]) == 2
    assert "there is no node node3" in capsys.readouterr().err


def test_where_there_are_more_ports_than_are_listed_it_says_so(
    hub: FakeHub, url: str, capsys: Out
) -> None:
    eight = [port(key=f"{n}/1", port=f"mlx5_{n}/1") for n in range(8)]
    hub.hears(*(beat(f"node{number}", *eight) for number in range(126)))

    assert main(["ports", "--url", url]) == 0

    assert "these are the first 1000: there are more; --node N" in capsys.readouterr().err


def test_advice_goes_by_the_timeouts_of_the_one_job_that_runs_on_many_nodes(
    hub: FakeHub, url: str, capsys: Out
) -> None:
    hub.hears(beat("node1"), beat("node2"))
    hub.happens(*(job(f"job-{node}", node=node, since=NOW - 600) for node in ("node1", "node2")))
    hub.happens(outage("flap-1", node="node1", down=NOW - 60, up=NOW - 58))

    assert main(["advise", "--url", url, "--json"]) == 0

    captured = capsys.readouterr()
    assert json.loads(captured.out)["job"] == "4711"
    assert "jobs run here" not in captured.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["maintenance"], "run `flapd maintenance` there"),
        (["repaired", "mlx5_0/1"], "run `flapd repaired` there"),
        (["record", "-o", "recorded"], "run `flapd record` there"),
    ],
)
def test_what_is_done_on_a_node_is_not_done_at_a_hub(
    url: str, words: list[str], said: str, tmp_path: Path, capsys: Out,
    monkeypatch: pytest.MonkeyPatch
) -> None:  # fmt: skip
    assert url
    monkeypatch.chdir(tmp_path)
    config = tmp_path / "hub.toml"
    config.write_text(f'paths.socket = "{tmp_path}/hub.sock"\n')

    assert main([*words, "--config", str(config)]) == 3

    assert said in capsys.readouterr().err
    assert not (tmp_path / "recorded").exists()


def test_a_node_is_unhealthy_only_where_the_hub_lets_it_be(
    hub: FakeHub, url: str, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    flapping = port(flapping=True)
    hub.hears(beat("node1", flapping), beat("node2", flapping), beat("node3"))
    hub.happens(outage("a", node="node2", down=NOW - 60, up=NOW - 58))
    said = {}
    for node in ("node1", "node2", "node3", "node4"):
        monkeypatch.setenv("FLAPD_NODE__NAME", node)
        said[node] = main(["healthcheck", "--url", url]), capsys.readouterr().out.strip()

    assert [status for status, _ in said.values()] == [0, 1, 0, 0]
    assert said["node1"][1] == (
        "healthy: mlx5_0/1 is flapping, with 0 downs; but as many others as may be taken out at "
        "one time are worse (hub.max_drains = 1)"
    )
    assert said["node2"][1] == "unhealthy: mlx5_0/1 is flapping, with 1 downs"
    assert said["node3"][1] == "healthy: nothing speaks against node3"
    assert said["node4"][1] == "healthy, as nothing is known: nothing is heard of node4"


def test_a_hub_that_does_not_answer_is_no_reason(capsys: Out) -> None:
    assert main(["healthcheck", "--url", "http://127.0.0.1:9"]) == 0
    assert "healthy, as nothing is known" in capsys.readouterr().out
