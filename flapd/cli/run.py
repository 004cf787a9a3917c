"""`flapd run`: the agent, in the foreground."""

import asyncio
import faulthandler
import os
import signal
from functools import partial
from pathlib import Path

from flapd.config import DEFAULT_PATH, Config, load_config
from flapd.lifecycle import run_node
from flapd.logs import set_up_logging


def run(config: Config, path: Path | None) -> int:
    """Until SIGTERM; the exit status."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # until there is something to re-read it
    faulthandler.enable()  # systemd's watchdog ends us by SIGABRT: then it tells where we hang
    set_up_logging(config.log.level, config.log.format)
    return asyncio.run(
        run_node(config, partial(load_config, path, os.environ), path or DEFAULT_PATH)
    )
