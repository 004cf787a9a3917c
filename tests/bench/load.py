"""Asks everything of an agent, a hundred times a second: `python -m tests.bench.load SOCKET`."""

import sys
import time
from itertools import cycle
from pathlib import Path

from tests.asking import UnixConnection

PATHS = ("/metrics", "/api/v1/ports", "/api/v1/flaps")
EVERY_SECONDS = 0.01


def main(path: Path) -> None:
    connection = UnixConnection(path)
    for asked in cycle(PATHS):
        began = time.monotonic()
        connection.request("GET", asked)
        connection.getresponse().read()
        time.sleep(max(0.0, EVERY_SECONDS - (time.monotonic() - began)))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
