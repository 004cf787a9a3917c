"""The options of `flapd budget`."""

import argparse
from collections.abc import Callable

from flapd.cli.values import number, seconds, whole

_gpus = whole(1, 10_000_000)
_mfu = number(0.0001, 1)
_amount = number(1, 1e21)
_UNITS = {"k": 1e3, "M": 1e6, "B": 1e9, "G": 1e9, "T": 1e12, "P": 1e15}


def amount(written: str) -> float:
    """`70e9` or `70B`."""
    unit = _UNITS.get(written[-1:], 1.0)
    return _amount(written if unit == 1.0 else written[:-1]) * unit


def step_seconds(written: str) -> float:
    """More than nothing."""
    span = seconds(written)
    if span < 0.001:
        raise argparse.ArgumentTypeError(f"{written!r}: a millisecond or more would be right")
    return span


def add_budget_options(command: argparse.ArgumentParser) -> None:
    _needed(command, "--params", amount, "N", "of the model, such as 70B")
    _needed(command, "--tokens", amount, "N", "in each step: global batch times sequence length")
    command.add_argument(
        "--gpus", type=_gpus, metavar="W", help="of the job (default: job.world_size)"
    )
    _needed(command, "--peak", amount, "F", "FLOP/s of one GPU, such as 989T")
    _needed(command, "--mfu", _mfu, "X", "model FLOPS utilisation to expect, such as 0.4")
    command.add_argument(
        "--measured", type=step_seconds, metavar="S", help="step time (default: by --log)"
    )
    command.add_argument(
        "--log", nargs="+", metavar="FILE", help="of the training: its step times are read"
    )
    command.add_argument(
        "--job",
        metavar="J",
        help="whose stalls and flaps count (default: of all jobs; at a hub, the one that runs)",
    )
    command.add_argument("--node", metavar="N", help="at a hub, what this node alone saw")
    command.add_argument("--since", default="24h", metavar="T", help="(default: 24h)")
    command.add_argument("--until", metavar="T")


def _needed(
    command: argparse.ArgumentParser,
    option: str,
    kind: Callable[[str], float],
    letter: str,
    purpose: str,
) -> None:
    command.add_argument(option, type=kind, required=True, metavar=letter, help=purpose)
