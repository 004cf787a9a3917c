"""A program: the queue pairs of all processes as flapd finds them, and those in error.

Run by flapd's own Python; for others `queue_pairs` is what it tells.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

_PYTHON = "/opt/flapd/bin/python"


def queue_pairs() -> Any:
    """By thread that opened the device, how many on each port, by the port's key."""
    told = subprocess.run(
        [_PYTHON, "-m", "tests.kernel.guest.queue_pairs"],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    return json.loads(told.stdout)


def main() -> None:
    from flapd.sources.jobs.queue_pairs import queue_pairs_of  # noqa: PLC0415 - not everybody's

    found = queue_pairs_of(Path("/sys"))
    told = {"all": found.all, "in_error": found.in_error, "blind_to": found.blind_to}
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
