"""The options of `flapd advise` beyond those that say what a flap meets."""

import argparse
from pathlib import Path

from flapd.cli.values import period, seconds, whole

_idle = whole(0, 10_000_000)
_nodes = whole(1, 1_000_000)


def add_advise_options(command: argparse.ArgumentParser) -> None:
    _add_flaps(command)
    _add_drain(command.add_argument_group("the drain"))


def _add_flaps(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--durations",
        type=Path,
        metavar="FILE",
        help="instead of the history: a duration a line, or what `flapd flaps --json` printed",
    )
    command.add_argument("--since", default="30d", metavar="T", help="(default: 30d)")
    command.add_argument("--until", metavar="T")
    command.add_argument(
        "--job", metavar="J", help="whose timeouts are in force (default: the only one that runs)"
    )


def _add_drain(group: "argparse._ArgumentGroup") -> None:
    group.add_argument(
        "--remaining",
        type=period,
        default="24h",
        metavar="S",
        help="how long the job still runs (default: 24h)",
    )
    group.add_argument(
        "--idle-gpus",
        type=_idle,
        default=0,
        metavar="N",
        help="that wait for the repair (default: 0, a spare is there)",
    )
    group.add_argument(
        "--repair-time", type=seconds, default="24h", metavar="S", help="(default: 24h)"
    )
    group.add_argument(
        "--most-drains",
        type=_nodes,
        metavar="N",
        help="nodes at once (default: 1 in 100, at least 1)",
    )
