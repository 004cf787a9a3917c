"""`flapd healthcheck` against a real server: what is no answer drains nobody."""

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flapd.cli.healthcheck import WITHIN_SECONDS
from flapd.cli.main import main
from flapd.core.fabric.view import Repair, Snapshot
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS, Edge
from tests.cli.here import Here, agent_at, recent
from tests.serve.parts import port, view

TWO = (
    view(),
    view(port(key="0x2/1", device="mlx5_1", guid="0002:c903:0000:0002")),
)


def flaps_of_one_port(count: int) -> tuple[Outage, ...]:
    whole = recent()
    assert whole.up is not None
    return tuple(
        recent(
            f"f{number}",
            down=_earlier(whole.down, 100 * number),
            up=_earlier(whole.up, 100 * number),
        )
        for number in range(count)
    )


def _earlier(edge: Edge, seconds: int) -> Edge:
    ns = seconds * SECOND_NS
    return Edge(edge.earliest_ns - ns, edge.latest_ns - ns, edge.wall_offset_ns)


def test_a_node_that_is_well_is_healthy(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, ports=TWO):
        assert here.command("healthcheck") == 0

    assert capsys.readouterr().out == "healthy: 2 ports watched, none is flapping or missing\n"


def test_too_many_flaps_are_a_no_with_its_reason(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, flaps_of_one_port(4), TWO):
        assert here.command("healthcheck") == 1
        assert here.command("healthcheck", "--max-flaps", "4") == 0
        assert here.command("healthcheck", "--window", "150s") == 0

    assert capsys.readouterr().out.splitlines()[0] == ("unhealthy: mlx5_0/1 flapped 4 times in 1 h")


@pytest.mark.parametrize("cause", ["admin", "boot", "driver_reload", "removed", "maintenance"])
def test_what_people_and_reboots_do_does_not_count(here: Here, cause: str) -> None:
    whole = flaps_of_one_port(9)
    outages = tuple(recent(one.id, cause=cause, down=one.down, up=one.up) for one in whole)

    with agent_at(here, outages, TWO):
        assert here.command("healthcheck") == 0


def test_flaps_of_the_grace_after_a_boot_do_not_count(here: Here) -> None:
    whole = flaps_of_one_port(9)
    outages = tuple(recent(one.id, grace=True, down=one.down, up=one.up) for one in whole)

    with agent_at(here, outages, TWO):
        assert here.command("healthcheck") == 0


def test_flaps_before_a_repair_do_not_count(here: Here) -> None:
    repaired = view(repaired=Repair(time.time_ns() - 30 * SECOND_NS, "new cable"))

    with agent_at(here, flaps_of_one_port(9), (repaired, TWO[1])):
        assert here.command("healthcheck") == 0


def test_a_flapping_port_is_a_no(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, ports=(view(flapping=True), TWO[1])):
        assert here.command("healthcheck", "--json") == 1

    assert json.loads(capsys.readouterr().out) == {
        "healthy": False,
        "verdict": "unhealthy",
        "reason": "mlx5_0/1 is flapping",
    }


def test_fewer_ports_than_expected_are_a_no(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here, ports=TWO) as (agent, _):
        agent.shown = Snapshot(ports=TWO, ports_expected=3, is_scouted=True)
        assert here.command("healthcheck") == 1

    assert capsys.readouterr().out == "unhealthy: 1 of 3 expected ports missing\n"


@pytest.mark.parametrize(
    ("shown", "said"),
    [
        (Snapshot(ports=TWO, ports_expected=3), "it is not known yet which ports there are"),
        (Snapshot(ports_expected=3), "it is not known yet which ports there are"),
        (
            Snapshot(ports=TWO, ports_expected=3, is_scouted=True, blind=frozenset({"mlx5_7"})),
            "which ports mlx5_7 has cannot be told",
        ),
    ],
)
def test_no_port_is_missing_where_it_cannot_be_told_which_there_are(
    here: Here, capsys: pytest.CaptureFixture[str], shown: Snapshot, said: str
) -> None:
    with agent_at(here) as (agent, _):
        agent.shown = shown
        assert here.command("healthcheck") == 0

    assert capsys.readouterr().out.startswith(f"healthy, as nothing is known: {said}")


def test_where_flaps_are_not_told_a_port_called_flapping_is_no_no(here: Here) -> None:
    """All ports may have had them together."""
    with agent_at(here, ports=(view(flapping=True), TWO[1])) as (agent, _):
        assert here.command("healthcheck") == 1
        agent.history.close()
        (here.directory / "history.sqlite").write_bytes(b"damaged" * 1000)
        assert here.command("healthcheck") == 0
        assert here.command("healthcheck", "--unknown", "unhealthy") == 1


def test_without_an_agent_nothing_is_known_and_nobody_is_drained(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert here.command("healthcheck") == 0
    assert here.command("healthcheck", "--unknown", "unhealthy") == 1

    healthy, unhealthy = capsys.readouterr().out.splitlines()
    assert healthy.startswith("healthy, as nothing is known: no agent answers")
    assert unhealthy.startswith("unhealthy, as nothing is known: no agent answers")


def test_an_agent_that_is_not_ready_is_not_known_to_be_well(here: Here) -> None:
    with agent_at(here, ports=TWO) as (agent, _):
        agent.reasons = ["it is not known yet which ports there are"]
        assert here.command("healthcheck") == 0
        assert here.command("healthcheck", "--unknown", "unhealthy") == 1


def test_a_wrong_configuration_drains_nobody(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    here.config.write_text("node.nam = 1")

    assert here.command("healthcheck") == 0
    assert "node.nam" in capsys.readouterr().out


@contextmanager
def server(answer: bytes) -> Iterator[str]:
    """Says the same to everybody and then nothing more, until it is left."""
    left = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)
                left.wait()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            left.set()
            thread.join()


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]",
        b'HTTP/1.1 200 OK\r\nContent-Length: 13\r\n\r\n{"items":[1]}',
        b"HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
        b"SSH-2.0-OpenSSH_9.2\r\n",
    ],
)
def test_whoever_answers_instead_drains_nobody(
    capsys: pytest.CaptureFixture[str], answer: bytes
) -> None:
    with server(answer) as url:
        assert main(["healthcheck", "--url", url]) == 0

    out, err = capsys.readouterr()
    assert out.startswith("healthy, as nothing is known: ")
    assert len(out.splitlines()) == 1
    assert err == ""


def test_who_answers_byte_by_byte_is_not_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flapd.cli.healthcheck.WITHIN_SECONDS", 0.2)

    with server(b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n{") as url:
        assert main(["healthcheck", "--url", url]) == 0

    assert WITHIN_SECONDS == 5
    assert "no answer within 0.2 s" in capsys.readouterr().out


def test_a_full_disk_behind_stdout_drains_nobody(here: Here) -> None:
    command = [sys.executable, "-m", "flapd", "healthcheck", "--config", str(here.config)]

    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, check=False)

    assert (done.returncode, done.stderr) == (0, b"")
