"""`flapd run`: the agent, in the foreground."""

import asyncio
from pathlib import Path

from flapd.config import Config
from flapd.logs import set_up_logging
from flapd.node import run_node


def run(config: Config, path: Path | None) -> int:  # noqa: ARG001 - for re-reading it
    """Until SIGTERM; the exit status."""
    set_up_logging(config.log.level, config.log.format)
    return asyncio.run(run_node(config))
