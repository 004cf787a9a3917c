"""The commands against a real server: what they print, where, and how they end."""

import json
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trustme

from flapd import __version__
from flapd.cli import client
from flapd.cli.main import main
from tests.cli.here import Here, agent_at, recent
from tests.serve.parts import port, view

AT = "2026-11-22T11:12:13.456789Z"


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


@pytest.mark.parametrize("url", [*("node17", "ftp://a", "http://"), "http://a:x", "http://[a", ""])
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


@pytest.mark.parametrize("command", ["status", "ports", "flaps", "healthcheck"])
@pytest.mark.parametrize("status", ["200 OK", "503 No"])
def test_an_answer_that_is_nested_too_deeply_is_not_understood(
    capsys: pytest.CaptureFixture[str], command: str, status: str
) -> None:
    deep = b'{"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}"

    with answering(f"HTTP/1.1 {status}\r\n\r\n".encode() + deep) as url:
        ended = main([command, "--url", url])

    out, err = capsys.readouterr()
    assert ended == (0 if command == "healthcheck" else 3)
    assert len((out + err).splitlines()) == 1
    assert "not one of flapd's" in out + err or "not as flapd does" in out + err


@pytest.mark.parametrize("command", ["status", "ports", "flaps"])
def test_who_answers_byte_by_byte_is_not_waited_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setattr(client, "WITHIN_SECONDS", 0.3)

    with dripping() as url:
        assert main([command, "--url", url]) == 3

    assert f"{url} (no answer within 0.3 s)" in capsys.readouterr().err


@contextmanager
def dripping() -> Iterator[str]:
    """Somebody whose answer never ends, although it goes on."""
    left = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n")
                while not left.wait(0.05):
                    connection.sendall(b" ")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            left.set()
            thread.join()


NEXT_TO_NOTHING = {
    "flaps": {"id": "f1", "port": "mlx5_0/1", "down": {"earliest": AT, "latest": AT}},
    "ports": {"port": "mlx5_0/1", "watched": True, "ever_up": True, "readable": True},
}


@pytest.mark.parametrize(("command", "blanks"), [("flaps", 4), ("ports", 3)])
def test_an_agent_that_tells_less_is_understood_and_nothing_is_made_up(
    capsys: pytest.CaptureFixture[str], command: str, blanks: int
) -> None:
    listed = json.dumps({"items": [NEXT_TO_NOTHING[command]]}).encode()

    with answering(b"HTTP/1.1 200 OK\r\n\r\n" + listed) as url:
        assert main([command, "--url", url]) == 0

    out = capsys.readouterr().out
    assert "mlx5_0/1" in out
    assert out.count("not known") == blanks


@contextmanager
def answering(
    answer: bytes, asked: list[bytes] | None = None, tls: ssl.SSLContext | None = None
) -> Iterator[str]:
    """Somebody who says the same to everybody, and notes in `asked` what they asked."""
    heard = [] if asked is None else asked
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with suppress(ssl.SSLError):  # of a client that does not trust us
                connection = connection if tls is None else tls.wrap_socket(connection, True)
                heard.append(connection.recv(65536))
                connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join()


@pytest.fixture
def behind_tls(here: Here) -> Iterator[Here]:
    """A node whose agent speaks TLS, asked by somebody who may not use its socket."""
    issued = trustme.CA().issue_cert("node17.example.org")
    certificate, key = here.directory / "cert.pem", here.directory / "key.pem"
    certificate.write_bytes(b"".join(pem.bytes() for pem in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    http: dict[str, Any] = {"tls_cert": str(certificate), "tls_key": str(key)}
    with agent_at(here, (recent("f1"),), **http) as (_, url):
        here.config.write_text(
            f'paths.socket = "{here.directory}/none.sock"\n[http]\n'
            f'tls_cert = "{certificate}"\n'
            f'listen = "0.0.0.0:{url.rpartition(":")[2]}"\n'
        )
        yield here


def test_an_agent_that_speaks_tls_is_asked_so_over_loopback(
    behind_tls: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert behind_tls.command("flaps", "--json") == 0
    assert json.loads(capsys.readouterr().out)["items"][0]["id"] == "f1"


def test_whoever_listens_in_its_place_gets_no_token(
    behind_tls: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not even one whom the same authority certifies, as it does other nodes' agents."""
    authority = trustme.CA()
    own = authority.issue_cert("node17.example.org")
    chain = [*own.cert_chain_pems, authority.cert_pem]
    (behind_tls.directory / "cert.pem").write_bytes(b"".join(pem.bytes() for pem in chain))
    token = behind_tls.directory / "token"
    token.write_text("s3cr3t")
    somebody_else = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(somebody_else)
    heard: list[bytes] = []

    with answering(b"HTTP/1.1 200 OK\r\n\r\n{}", heard, somebody_else) as url:
        listen = f'listen = "127.0.0.1:{url.rpartition(":")[2]}"'
        text = re.sub("listen = .*", listen, behind_tls.config.read_text())
        behind_tls.config.write_text(text)
        assert behind_tls.command("flaps", "--token-file", str(token)) == 3

    assert heard == []
    assert "its certificate is not trusted" in capsys.readouterr().err


@pytest.mark.parametrize("content", [None, b"no PEM"])
def test_without_its_certificate_the_agent_is_not_asked_over_loopback(
    behind_tls: Here, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    certificate = behind_tls.directory / "cert.pem"
    certificate.unlink()
    if content is not None:
        certificate.write_bytes(content)

    assert behind_tls.command("flaps") == 3

    err = capsys.readouterr().err
    assert f"(http.tls_cert {certificate} cannot be used: " in err
    assert len(err.splitlines()) == 1


def test_a_token_goes_to_the_url_it_is_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = tmp_path / "token"
    token.write_text("s3cr3t\n")
    asked: list[bytes] = []

    with answering(b'HTTP/1.1 200 OK\r\n\r\n{"items":[],"next":null}', asked) as url:
        assert main(["flaps", "--url", url, "--token-file", str(token)]) == 0

    assert b"Authorization: Bearer s3cr3t\r\n" in asked[0]


@pytest.mark.parametrize(
    "content", [None, b"", b"\n", b"a\nb", b"a b", b"a" * 4097, "ü".encode(), b"\xff"]
)
def test_a_file_without_a_token_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes | None
) -> None:
    token = tmp_path / "token"
    if content is not None:
        token.write_bytes(content)

    assert main(["flaps", "--url", "http://127.0.0.1:1", "--token-file", str(token)]) == 2
    assert f"--token-file {token}" in capsys.readouterr().err


def test_a_token_file_that_need_not_end_is_wrong_input(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "fifo")

    for file in (str(tmp_path / "fifo"), "/dev/zero"):
        assert main(["flaps", "--url", "http://127.0.0.1:1", "--token-file", file]) == 2
        assert f"--token-file {file}: is no regular file" in capsys.readouterr().err


def test_a_password_in_a_url_is_refused_and_not_repeated(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["flaps", "--url", "http://me:s3cr3t@node17:19315"]) == 2
    assert "s3cr3t" not in capsys.readouterr().err


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


def test_a_port_list_of_elsewhere_is_not_replaced_by_ours(
    here: Here, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["ports", "--url", "http://127.0.0.1:1"]) == 3
    assert capsys.readouterr().out == ""


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

    for command in ("run", "flaps", "ports", "status", "maintenance"):
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
        (["flaps", "--limit", "0"], 2, "a whole number from 1 to"),
        (["healthcheck", "--window", "soon"], 2, '"12h"'),
        (["healthcheck", "--max-flaps", "-1"], 2, "--max-flaps"),
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
