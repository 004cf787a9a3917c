"""`flapd hub`: the fleet's view, in the foreground."""

from pathlib import Path

from flapd.cli.run import in_foreground
from flapd.config import Config
from flapd.lifecycle import run_hub


def hub(config: Config, path: Path | None) -> int:
    """Until SIGTERM; the exit status."""
    return in_foreground(run_hub, config, path)
