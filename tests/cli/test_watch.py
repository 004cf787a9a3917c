"""`flapd watch` in a terminal, against a real server."""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from flapd.core.fabric.view import Snapshot
from flapd.core.job.view import JobsView
from tests.cli.here import Here, agent_at, recent
from tests.cli.terminal import Terminal, flapd, terminal
from tests.cli.test_incidents import lately
from tests.serve.parts import port, view
from tests.store.jobs import job

WELL = view(errors={})
OTHER = view(port(key="0x2/1", device="mlx5_1"), errors={})
PORTS = (WELL, OTHER)


@contextmanager
def watching(here: Here, *words: str, columns: int = 100, lines: int = 30) -> Iterator[Terminal]:
    with terminal(columns, lines) as shown:
        shown.start(*flapd("watch", "--config", str(here.config), *words))
        yield shown


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_what_happens_is_shown_as_it_does(here: Here) -> None:
    with agent_at(here, ports=PORTS) as (agent, _), watching(here) as shown:
        before = shown.shows("live")
        agent.shown = Snapshot(ports=(view(up=False, errors={}), OTHER), is_scouted=True)
        agent.happens(recent("f1", port="mlx5_0/1", status="open", up=None))
        after = shown.shows("mlx5_0/1 went down and is still down")

    assert "node17: all is well" in before.splitlines()[0]
    assert "watched, 2 up, 0 flaps in 24 h" in before
    assert "no flap, no incident" in before
    assert "wrong now: 1" in after
    assert "DOWN" in after


def test_jobs_and_incidents_are_shown(here: Here) -> None:
    with agent_at(here, (recent("f1"),), PORTS) as (agent, _):
        agent.happens(lately(), lately("incident-2", open=True, end_unix_ns=None))
        agent.shown = replace(agent.shown, jobs=JobsView(running=(job(),)))
        with watching(here) as shown:
            text = shown.shows("live")

    assert "job 4711" in text
    assert "an incident goes on: see `flapd why incident-2`" in text
    assert "job 4711: caused by mlx5_0/1, absorbed, 4,506 GPU-s, 3.13 USD" in text
    assert "4711 (training, 1,024 ranks, 8 of them here)" in text


def test_an_agent_elsewhere_is_watched_and_what_it_does_not_tell_is_said(here: Here) -> None:
    with agent_at(here, (recent("f1"),), PORTS) as (_, url), watching(here, "--url", url) as shown:
        text = shown.shows("live")

    assert "all is well" in text
    assert "was down for" in text
    assert "http.open" in text  # why there are no incidents


@pytest.mark.parametrize(("keys", "status"), [("q", 0), ("\x04", 0), ("\x03", 130)])
def test_a_key_ends_it_and_the_terminal_is_as_it_was(here: Here, keys: str, status: int) -> None:
    with agent_at(here, ports=PORTS), watching(here) as shown:
        shown.shows("q quits")
        during = shown.mode()
        assert shown.screen.is_alternate
        assert shown.screen.hides_cursor
        shown.type(keys)
        assert shown.ends() == status
        assert shown.mode() != during
        assert not shown.screen.is_alternate
        assert not shown.screen.hides_cursor
        assert "Traceback" not in shown.text()


def test_sigterm_ends_it_and_the_terminal_is_as_it_was(here: Here) -> None:
    with agent_at(here, ports=PORTS), watching(here) as shown:
        shown.shows("q quits")
        shown.process.terminate()
        assert shown.ends() == 128 + signal.SIGTERM
        assert not shown.screen.is_alternate


def test_it_can_be_stopped_and_goes_on(here: Here) -> None:
    with agent_at(here, ports=PORTS), watching(here) as shown:
        shown.shows("q quits")
        shown.type("\x1a")
        shown.until(lambda: is_stopped(shown.process.pid), "its stop")
        shown.until(lambda: not shown.screen.is_alternate, "the terminal as it was")
        os.kill(shown.process.pid, signal.SIGCONT)
        shown.until(lambda: shown.screen.is_alternate, "a full screen")
        shown.type("q")
        assert shown.ends() == 0


def test_it_follows_the_size_of_the_terminal(here: Here) -> None:
    flaps = tuple(recent(f"f{number}") for number in range(40))
    with agent_at(here, flaps, PORTS), watching(here) as shown:
        shown.shows("q quits")
        shown.resize(44, 12)
        shown.until(lambda: is_whole(shown.lines(), 12), "a small screen that says what it cut")
        shown.resize(120, 60)
        shown.until(lambda: sum("was down" in line for line in shown.lines()) == 40, "all flaps")
        shown.type("q")
        assert shown.ends() == 0


def is_whole(lines: list[str], most: int) -> bool:
    return (
        "all is well" in lines[0] and "q quits" in lines[most - 1] and "and 38 more" in str(lines)
    )


def test_of_an_agent_that_goes_it_says_so_and_sees_it_come_back(here: Here) -> None:
    with agent_at(here, (recent("f1"),), PORTS):
        shown_in = watching(here)
        shown = shown_in.__enter__()
        shown.shows("live")
    try:
        gone = shown.shows("NOT KNOWN: no answer since")
        with agent_at(here, (), PORTS):
            back = shown.shows("live")
        shown.type("q")
        assert shown.ends() == 0
    finally:
        shown_in.__exit__(None, None, None)

    assert "no agent answers: tried" in gone
    assert "What follows was so at" in gone
    assert "NOT KNOWN" not in back


def test_without_a_terminal_it_is_wrong_use(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    assert here.command("watch") == 2

    assert capsys.readouterr().err == (
        "flapd: flapd watch needs a terminal; `flapd status` says the same once\n"
    )


def test_a_terminal_that_cannot_move_its_cursor_is_none(here: Here) -> None:
    with terminal() as shown:
        shown.start(*flapd("watch", "--config", str(here.config)), TERM="dumb")
        assert shown.ends() == 2
        assert "needs a terminal" in shown.text()


def test_without_an_agent_it_says_where_it_looked(here: Here) -> None:
    with watching(here) as shown:
        assert shown.ends() == 3
        assert "no agent answers: tried" in shown.text()
        assert not shown.screen.is_alternate
