"""`flapd watch`: what `flapd status` says, live, with what happened last."""

import os
import signal
import sys
import time
from collections.abc import Sequence
from contextlib import closing

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from flapd.cli.target import Target
from flapd.cli.watch_feed import View, WatchFeed, look_at_all
from flapd.cli.watch_screen import Size, screen
from flapd.cli.watch_terminal import Told, WatchTerminal
from flapd.model.errors import FlapdError

_REDRAW_SECONDS = 1.0
_QUIT_KEYS = b"qQ\x04"
_ENDED_BY_SIGNAL = 128


def watch(targets: Sequence[Target], utc: bool) -> int:
    """The exit status, when somebody wants no more of it; needs a terminal."""
    console = Console(markup=False, emoji=False, highlight=False)
    is_terminal = sys.stdin.isatty() and sys.stdout.isatty()
    if not is_terminal or console.is_dumb_terminal:
        raise FlapdError("flapd watch needs a terminal; `flapd status` says the same once")
    terminal = WatchTerminal()
    first = look_at_all(targets)
    with closing(WatchFeed(targets, first, terminal.wake)) as feed:
        while True:
            ended_by = _shown(console, terminal, feed, utc)
            if ended_by != signal.SIGTSTP:
                return _ENDED_BY_SIGNAL + ended_by if ended_by else 0
            os.kill(os.getpid(), signal.SIGSTOP)


def _shown(console: Console, terminal: WatchTerminal, feed: WatchFeed, utc: bool) -> int:
    """Shows what is, until a key or a signal ends it; the signal's number, 0 for a key."""
    full = Live(console=console, screen=True, auto_refresh=False)
    with terminal.keys_one_by_one(), full as live:
        while True:
            console.size = columns, lines = terminal.size()
            live.update(_drawn(feed.view, Size(columns, lines), utc), refresh=True)
            told = terminal.wait(_REDRAW_SECONDS)
            ended_by = _end(told)
            if ended_by is not None:
                return ended_by


def _end(told: Told) -> int | None:
    for number in (signal.SIGTERM, signal.SIGTSTP):
        if number in told.signals:
            return number
    return 0 if any(key in _QUIT_KEYS for key in told.keys) else None


def _drawn(view: View, size: Size, utc: bool) -> Group:
    lines = screen(view, size, time.time_ns(), utc)
    return Group(
        *(Text(line.text, line.style, no_wrap=True, overflow="ellipsis") for line in lines)
    )
