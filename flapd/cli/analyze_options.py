"""The options of `flapd analyze`."""

import argparse
from pathlib import Path

from flapd.cli.values import whole

_year = whole(1970, 9998)
_gpus = whole(1, 10_000_000)


def add_analyze_options(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "logs",
        nargs="+",
        metavar="LOG",
        help="logs and flight recorder dumps, packed or not; - for stdin",
    )
    command.add_argument(
        "--flaps", type=Path, metavar="FILE", help="what `flapd flaps --json` printed"
    )
    command.add_argument(
        "--year", type=_year, metavar="Y", help="of times without one (default: by the file's)"
    )
    command.add_argument(
        "--timezone",
        metavar="Z",
        help="such as Europe/Berlin, or --timezone=-05:00 (default: this machine's)",
    )
    command.add_argument(
        "--gpus", type=_gpus, metavar="W", help="of the job (default: as the logs tell)"
    )
