"""Quietly: a program run in the background, whose words would be taken for those of some test."""

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path


def run_quietly(
    command: Sequence[str | Path],
    within_seconds: float | None = None,
    environment: Mapping[str, str] | None = None,
) -> None:
    """AssertionError with what it said where it fails."""
    ended = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=within_seconds,
        env=environment,
        check=False,
    )
    assert ended.returncode == 0, f"{command[0]} failed\n{ended.stdout}"
