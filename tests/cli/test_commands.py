"""The commands against a real server: what they print, where, and how they end."""

import asyncio
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import structlog
from msgspec.structs import replace

from flapd import __version__
from flapd.cli.main import main
from flapd.core.fabric.view import PortView, Snapshot
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS, Edge
from tests.serve.parts import FakeAgent, port, serving, view
from tests.store.outages import outage, with_length

WIDEST = 100


class Here:
    """A node whose configuration names this directory's socket and a free TCP port."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.config = directory / "flapd.toml"
        self.config.write_text(
            f'paths.socket = "{directory}/flapd.sock"\npaths.sysfs = "{directory}/sys"\n'
            'http.listen = ""\n'
        )

    def command(self, *words: str) -> int:
        return main([*words, "--config", str(self.config)])


@pytest.fixture(autouse=True)
def quiet_server() -> Iterator[None]:
    """It logs in this process, whose output is the command's here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


@contextmanager
def agent_at(
    here: Here, outages: tuple[Outage, ...] = (), ports: tuple[PortView, ...] = ()
) -> Iterator[tuple[FakeAgent, str]]:
    """A served agent on another thread, and its URL."""
    agent = FakeAgent(here.directory, outages)
    agent.shown = Snapshot(ports=ports)
    started: Future[str] = Future()
    ended = threading.Event()

    async def serve() -> None:
        async with serving(agent, here.directory) as server:
            assert server.tcp_address is not None
            started.set_result(f"http://127.0.0.1:{server.tcp_address[1]}")
            await asyncio.to_thread(ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        yield agent, started.result(10)
    finally:
        ended.set()
        thread.join()


def recent(flap_id: str = "f1", **changes: Any) -> Outage:
    """An outage that ended a minute ago, with edges of 100 and 200 ms."""
    now_ns = time.monotonic_ns()
    began_ns = now_ns - 60 * SECOND_NS
    wall_ns = time.time_ns() - now_ns
    down = Edge(began_ns, began_ns + SECOND_NS // 10, wall_ns)
    up = Edge(began_ns + SECOND_NS // 2, began_ns + SECOND_NS // 10 * 7, wall_ns)
    return with_length(replace(outage(flap_id), **{"down": down, "up": up, **changes}))


def test_flaps_are_a_table_that_fits(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    outages = (
        recent("closed"),
        recent("open", up=None, status="open", count=250, count_at_least=True),
        recent("lost", up=None, status="lost", port="rocep139s0f0/1", seen="while_away"),
    )

    with agent_at(here, outages):
        assert here.command("flaps") == 0

    out, err = capsys.readouterr()
    assert err == ""
    assert "0.40\N{EN DASH}0.70 s" in out
    assert "±0.05" in out
    assert "still down" in out
    assert "at least 250" in out
    assert "end unknown" in out
    assert "while away" in out
    assert max(map(len, out.splitlines())) <= WIDEST
    assert len(out.splitlines()) == 4
    assert "\x1b" not in out


def test_an_empty_history_says_so(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    with agent_at(here):
        assert here.command("flaps") == 0

    assert capsys.readouterr().out == "No flaps: no outage matches.\n"


def test_filters_reach_the_agent(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    outages = (recent("a"), recent("b", port="mlx5_1/1"), recent("c", cause="subnet"))

    with agent_at(here, outages):
        assert here.command("flaps", "--port", "mlx5_0/1", "--cause", "link", "--json") == 0

    assert [item["id"] for item in json.loads(capsys.readouterr().out)["items"]] == ["a"]


def test_the_last_day_is_shown_unless_asked_otherwise(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (outage("of 2023"),)):
        assert here.command("flaps") == 0
        assert here.command("flaps", "--since", "2023-11-14T00:00:00Z") == 0

    out = capsys.readouterr().out.splitlines()
    assert out[0].startswith("No flaps")
    assert "2023-11-14 22:13:30.000" in out[2]


def test_that_there_is_more_is_told_beside_the_table(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent("a"), recent("b"))):
        assert here.command("flaps", "--limit", "1") == 0

    out, err = capsys.readouterr()
    assert len(out.splitlines()) == 2
    assert "--limit" in err


@pytest.mark.parametrize(
    "words", [["--since", "yesterday"], ["--limit", "0"], ["--cause", "me"], ["--min-down", "x"]]
)
def test_a_wrong_filter_is_wrong_input(
    here: Here, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with agent_at(here):
        assert here.command("flaps", *words) == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"flapd: {words[0][2:].replace('-', '_')}: ")
    assert len(err.splitlines()) == 1


def test_without_an_agent_flaps_says_where_it_looked(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    here.config.write_text(
        f'paths.socket = "{here.directory}/none.sock"\nhttp.listen = "0.0.0.0:1"'
    )

    assert here.command("flaps") == 3

    err = capsys.readouterr().err
    assert f"{here.directory}/none.sock (no such file or directory)" in err
    assert "http://127.0.0.1:1 (connection refused)" in err
    assert "flapd run" in err
    assert len(err.splitlines()) == 1


def test_without_its_socket_an_agent_is_asked_over_loopback(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent("f1"),)) as (_, url):
        here.config.write_text(
            f'paths.socket = "{here.directory}/none.sock"\n'
            f'http.listen = "0.0.0.0:{url.rpartition(":")[2]}"'
        )
        assert here.command("flaps", "--json") == 0

    assert json.loads(capsys.readouterr().out)["items"][0]["id"] == "f1"


def test_an_agent_elsewhere_is_asked_by_its_url(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    with agent_at(here, (recent("f1"),)) as (_, url):
        assert main(["flaps", "--url", url, "--json"]) == 0

    assert json.loads(capsys.readouterr().out)["items"][0]["id"] == "f1"


@pytest.mark.parametrize("url", ["node17", "ftp://a", "http://", "http://a:x", "http://[a", ""])
def test_what_is_no_url_is_wrong_input(capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert main(["flaps", "--url", url]) == 2
    assert "http://node17:19315" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "not an answer of HTTP"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]", "not one of flapd's"),
        (b"HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n", "answers 302"),
        (
            b'HTTP/1.1 503 No\r\n\r\n{"error":{"code":"unavailable","message":"a\\u001b[2Jb"}}',
            "a\N{REPLACEMENT CHARACTER}[2Jb",
        ),
    ],
)
def test_whoever_answers_instead_is_not_believed(
    capsys: pytest.CaptureFixture[str], answer: bytes, said: str
) -> None:
    with answering(answer) as url:
        assert main(["flaps", "--url", url]) == 3

    err = capsys.readouterr().err
    assert said in err
    assert len(err.splitlines()) == 1


@contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """Somebody who says the same to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


def test_names_from_elsewhere_do_not_steer_the_terminal(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    evil = port(device="\x1b]0;a\x07[red]x", netdev="\x9b2J", driver="[bold]")
    shown = (view(evil, present=False, errors={"\x1b[2J": "x"}),)

    with agent_at(here, (recent("f1", port="\x1b[2J/1"),), shown):
        assert here.command("flaps") == 0
        assert here.command("ports") == 0
        assert here.command("ports", "--json") == 0

    out = capsys.readouterr().out
    assert all(char.isprintable() for char in out.replace("\n", ""))
    assert "[red]x" in out.replace("\n", "")


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
    for word in ("link_downed", "3 live", "DOWN", "2.5 Gb/s", "- unproven"):
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


def test_a_port_list_of_elsewhere_is_not_replaced_by_ours(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ports", "--url", "http://127.0.0.1:1"]) == 3
    assert capsys.readouterr().out == ""


def test_a_recording_becomes_a_file(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    class Short(FakeAgent):
        """Has recorded all there is by the time it says it began."""

        def start_recording(self, seconds: float, max_bytes: int) -> Any:
            began = super().start_recording(seconds, max_bytes)
            self.file.write_bytes(b"observations" * 10_000)
            self.stop_recording()
            return began

    into = here.directory / "out.flapd"

    with agent_at(here) as (agent, _):
        agent.__class__ = Short
        assert here.command("record", "-o", str(into), "--for", "2s") == 0

    assert into.read_bytes() == b"observations" * 10_000
    assert "120000 bytes" in capsys.readouterr().err


def test_a_recording_never_overwrites(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    into = here.directory / "out.flapd"
    into.write_text("precious")

    with agent_at(here) as (agent, _):
        assert here.command("record", "-o", str(into)) == 2
        assert agent.status is None

    assert into.read_text() == "precious"
    assert "is there already" in capsys.readouterr().err


@pytest.mark.parametrize(("span", "status"), [("soon", 2), ("2s", 3)])
def test_a_recording_that_does_not_begin_leaves_no_file(
    here: Here, capsys: pytest.CaptureFixture[str], span: str, status: int
) -> None:
    into = here.directory / "out.flapd"

    with agent_at(here) as (agent, _):
        agent.disk_is_full = True
        assert here.command("record", "-o", str(into), "--for", span) == status

    assert not into.exists()
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_right_configuration_is_ok(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.command("check-config") == 0
    assert capsys.readouterr().out == f"ok: {here.config}\n"


def test_each_fault_of_a_configuration_is_a_line(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    here.config.write_text('log.level = "loud\\u009b"\nnode.nam = 1')

    assert here.command("check-config") == 2

    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "node.nam = 1: there is no such key; did you mean node.name?",
        'log.level = "loud\N{REPLACEMENT CHARACTER}": one of "debug", "info", "warning", "error"',
    ]


def test_no_command_starts_with_a_wrong_configuration(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    here.config.write_text("log.level = 1\nflap.drop_after = -1")

    for command in ("run", "flaps", "ports"):
        assert here.command(command) == 2
        assert len(capsys.readouterr().err.splitlines()) == 2


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["--version"], 0, f"flapd {__version__}"),
        (["--help"], 0, "check-config"),
        ([], 2, "COMMAND"),
        (["flap"], 2, "invalid choice"),
        (["flaps", "--sinc"], 2, "--sinc"),
        (["record"], 2, "-o"),
    ],
)
def test_wrong_use_is_told(
    capsys: pytest.CaptureFixture[str], words: list[str], status: int, said: str
) -> None:
    assert main(words) == status

    out, err = capsys.readouterr()
    assert said in (out if status == 0 else err)


def flapd(*words: str, **more: Any) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "flapd", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **more,
    )


def test_the_command_ends_with_its_status_and_without_a_trace(here: Here) -> None:
    out, err = (process := flapd("flaps", "--config", str(here.config))).communicate(timeout=30)

    assert process.returncode == 3
    assert out == ""
    assert err.startswith("flapd: no agent answers")
    assert "Traceback" not in err


def test_a_reader_that_has_enough_is_no_fault(here: Here) -> None:
    outages = tuple(recent(f"f{number}") for number in range(1000))

    with agent_at(here, outages):
        process = flapd("flaps", "--limit", "1000", "--json", "--config", str(here.config))
        assert process.stdout is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr is not None
        err = process.stderr.read()
        process.stderr.close()
        status = process.wait(30)

    assert (status, err) == (0, "")


def test_a_full_disk_is_told_in_a_sentence(here: Here) -> None:
    with agent_at(here), Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "flapd", "flaps", "--config", str(here.config)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )

    assert done.returncode == 3
    assert done.stderr == "flapd: [Errno 28] No space left on device\n"


def test_a_terminal_that_knows_only_latin_letters_gets_a_table(here: Here) -> None:
    environ = {**os.environ, "PYTHONIOENCODING": "latin-1"}

    with agent_at(here, (recent("f1"),)):
        done = subprocess.run(
            [sys.executable, "-m", "flapd", "flaps", "--config", str(here.config)],
            env=environ,
            capture_output=True,
            check=False,
        )

    assert done.returncode == 0
    assert b"0.40?0.70 s" in done.stdout


def test_ctrl_c_ends_a_recording_and_keeps_it(here: Here) -> None:
    into = here.directory / "out.flapd"

    with agent_at(here) as (agent, _):
        process = flapd("record", "-o", str(into), "--config", str(here.config))
        assert process.stderr is not None
        assert "Ctrl-C" in process.stderr.readline()
        agent.file.write_bytes(b"observations")
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=30)

    assert process.returncode == 0
    assert into.read_bytes() == b"observations"
    assert err == "flapd: 12 bytes recorded\n"


def test_ctrl_c_elsewhere_is_quiet(here: Here) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(here.directory / "flapd.sock"))
        silent.listen()
        process = flapd("flaps", "--config", str(here.config))
        connection, _ = silent.accept()
        with connection:
            connection.recv(65536)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=30)

    assert (process.returncode, out, err) == (130, "", "")


def test_the_client_carries_nothing_of_the_agent() -> None:
    program = (
        "import sys; from flapd.cli.main import main; main(['flaps', '--url', 'http://127.0.0.1:1'])"
        "; print([name for name in ('aiohttp', 'structlog', 'sqlite3', 'prometheus_client', 'rich')"
        " if name in sys.modules])"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert done.stdout == "[]\n"
