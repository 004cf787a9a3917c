"""A progress bar: on a terminal, for what takes long, and nowhere else."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from flapd.cli.progress import progress


@contextmanager
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Within it stderr is a terminal; what it shows can be read here."""
    ours, theirs = os.openpty()
    monkeypatch.setenv("TERM", "xterm")
    with os.fdopen(theirs, "w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        yield ours
    os.close(ours)


def shown_until(screen: int, last: str) -> str:
    """A terminal passes on what was written when it comes to it."""
    text = ""
    while last not in text:
        text += os.read(screen, 1 << 16).decode(errors="replace")
    return text


def test_what_takes_long_shows_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flapd.cli.progress.AFTER_SECONDS", 0)

    with terminal(monkeypatch) as screen:
        with progress("replaying") as passed:
            passed(30, 120)
        text = shown_until(screen, "25%")

    assert "replaying" in text


def test_what_ends_soon_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    with terminal(monkeypatch) as screen:
        with progress("replaying") as passed:
            passed(30, 120)
        sys.stderr.write("end")
        sys.stderr.flush()
        assert shown_until(screen, "end") == "end"


def test_where_there_is_no_terminal_there_is_no_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flapd.cli.progress.AFTER_SECONDS", 0)

    with (tmp_path / "err").open("w") as stderr:
        monkeypatch.setattr("sys.stderr", stderr)
        with progress("replaying") as passed:
            passed(30, 120)

    assert (tmp_path / "err").read_text() == ""
