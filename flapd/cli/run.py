"""`flapd run` and what every process in the foreground begins with."""

import asyncio
import faulthandler
import os
import signal
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any

from flapd.config import DEFAULT_PATH, Config, load_config
from flapd.lifecycle import run_node
from flapd.logs import set_up_logging


def run(config: Config, path: Path | None) -> int:
    """Until SIGTERM; the exit status."""
    return in_foreground(run_node, config, path)


Run = Callable[[Config, Callable[[], Config], Path], Coroutine[Any, Any, int]]


def in_foreground(live: Run, config: Config, path: Path | None) -> int:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to re-read it
    faulthandler.enable()  # systemd's watchdog ends us by SIGABRT: then it tells where we hang
    set_up_logging(config.log.level, config.log.format)
    return asyncio.run(live(config, partial(load_config, path, os.environ), path or DEFAULT_PATH))
