"""The options of `flapd cost`; what is not given is None, so that its source is known."""

import argparse
from collections.abc import Callable
from typing import Any, TypeAlias

from flapd.cli.values import list_of, number, period, seconds, whole

# argparse gives the type no other name.
_Group: TypeAlias = "argparse._ArgumentGroup"  # noqa: SLF001

_gpus = whole(1, 10_000_000)
_handling = whole(0, 3)
_timeout = whole(0, 64)
_retries = whole(0, 7)
_timer_floor = whole(0, 31)
_factor = number(0.01, 100)
_share = number(0, 1)
_price = number(0, 1_000_000)


_Several: TypeAlias = Callable[[Callable[[str], Any]], Callable[[str], Any]]
"""How a value is read that may be a list of values, or may not."""


def add_cost_options(command: argparse.ArgumentParser) -> None:
    flap = command.add_argument_group("the flap")
    flap.add_argument("--down", type=list_of(seconds), required=True, metavar="S[,S]")
    flap.add_argument("--every", type=period, metavar="S", help="it comes again so often")
    _add_model(command, flap, list_of)


def _shown(letter: str, several: _Several) -> str:
    return f"{letter}[,{letter}]" if several is list_of else letter


def add_policy_options(command: argparse.ArgumentParser) -> None:
    """Those of `flapd cost` that say what a flap meets, one value each."""
    _add_model(command, command.add_argument_group("the flaps"), lambda one: one)


def _add_model(command: argparse.ArgumentParser, flap: _Group, several: _Several) -> None:
    _add_flap(flap)
    _add_transport(command.add_argument_group("the transport"), several)
    _add_job(command.add_argument_group("the job"), several)
    _add_presets(command.add_argument_group("instead of single values"))


def _add_flap(group: _Group) -> None:
    group.add_argument(
        "--gpus", type=_gpus, metavar="W", help="GPUs that stand still: all of a job"
    )
    group.add_argument("--usable-after", type=seconds, metavar="S", help="from up until usable")
    group.add_argument("--hang", action="store_true", help="the transport never tells")


def _add_transport(group: _Group, several: _Several) -> None:
    timeouts, retries = _shown("T", several), _shown("R", several)
    group.add_argument(
        "--ib-timeout", type=several(_timeout), metavar=timeouts, help="NCCL_IB_TIMEOUT"
    )
    group.add_argument(
        "--retry-cnt", type=several(_retries), metavar=retries, help="NCCL_IB_RETRY_CNT"
    )
    group.add_argument("--schedule", choices=("fixed", "adaptive"))
    group.add_argument(
        "--timer-floor", type=_timer_floor, metavar="T", help="of the card, such as 17"
    )
    group.add_argument("--budget-factor", type=_factor, metavar="X", help="measured over nominal")
    group.add_argument("--first-try-counts", action="store_true", help="T * (R + 1), not T * R")
    group.add_argument("--failover", action="store_true", help="NCCL goes on with another port")
    group.add_argument("--slowdown", type=_share, metavar="X", help="0 to 1, while a port is short")


def _add_job(group: _Group, several: _Several) -> None:
    group.add_argument("--watchdog", type=several(period), metavar=_shown("S", several))
    group.add_argument("--enqueued-before", type=seconds, metavar="S", help="the flap")
    group.add_argument("--slack", type=seconds, metavar="S", help="overlap that hides a delay")
    group.add_argument("--uncoordinated", action="store_true", help="an error ends some ranks only")
    group.add_argument("--propagation", type=seconds, metavar="S", help="from error to teardown")
    group.add_argument("--restart", type=seconds, metavar="S", help="from teardown to training")
    group.add_argument("--checkpoint-age", type=seconds, metavar="S", help="work to do again")
    group.add_argument("--checkpoint-interval", type=period, metavar="S")
    group.add_argument(
        "--checkpoint-cost", type=seconds, metavar="S", help="time that saving blocks"
    )
    group.add_argument("--price", type=_price, metavar="X", help="of a GPU-hour")


def _add_presets(group: _Group) -> None:
    group.add_argument("--preset", choices=("in-process", "automated", "manual"), help="of restart")
    group.add_argument("--nccl", metavar="VERSION", help="such as 2.27.5")
    group.add_argument("--torch", metavar="VERSION", help="such as 2.8.0")
    group.add_argument(
        "--error-handling", type=_handling, metavar="N", help="TORCH_NCCL_ASYNC_ERROR_HANDLING"
    )
    group.add_argument("--launcher", choices=("torchrun", "slurm", "slurm-kill-on-bad-exit"))
