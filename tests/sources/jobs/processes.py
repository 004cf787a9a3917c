"""Starts ranks (rank.py) with the environment that a launcher gives them."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

RANK = Path(__file__).with_name("rank.py")


@contextmanager
def rank(
    kind: str,
    environment: dict[str, str],
    *held_open: Path,
    output: Path | None = None,
) -> Iterator["subprocess.Popen[str]"]:
    """`kind`: "threads", "fork" (with a forked worker), "bare" (none of NCCL's threads)."""
    stdout = output.open("a") if output is not None else subprocess.DEVNULL
    process = subprocess.Popen(
        [sys.executable, str(RANK), kind, *map(str, held_open)],
        env={"PATH": "/usr/bin", **environment},
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    )
    if not isinstance(stdout, int):
        stdout.close()
    with process:
        assert process.stderr is not None
        assert process.stderr.readline() == "READY\n"
        yield process
        process.kill()


def torchrun(rank_number: int, run: str, **more: str) -> dict[str, str]:
    return {
        "RANK": str(rank_number),
        "LOCAL_RANK": str(rank_number),
        "WORLD_SIZE": "16",
        "TORCHELASTIC_RUN_ID": run,
        **more,
    }
