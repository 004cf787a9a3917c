"""The command `flapd`: which command it is, and how it ends."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from flapd.cli.arguments import parser
from flapd.cli.client import SocketTarget, Target, local_targets, url_target
from flapd.cli.output import note
from flapd.config import Config, ConfigError, load_config
from flapd.model.errors import CouldNotFindOutError, FlapdError

WRONG_INPUT = 2
COULD_NOT_FIND_OUT = 3
INTERRUPTED = 130

_FILTERS = (
    *("since", "until", "port", "min_down", "cause", "status"),
    *("kind", "layer", "seen", "limit"),
)


def entry() -> None:
    """The console script."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that cannot show a character must not end the command.
        stream.reconfigure(errors="replace")  # type: ignore[union-attr]
    sys.exit(main(sys.argv[1:]))


def main(argv: Sequence[str]) -> int:
    """The exit status: 0 done, 1 a negative answer, 2 wrong use or input, 3 could not find out."""
    try:
        status = _chosen(parser().parse_args(argv))
        sys.stdout.flush()
    except SystemExit as ending:  # argparse has said it
        return ending.code if isinstance(ending.code, int) else WRONG_INPUT
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _nobody_reads()
    except (FlapdError, OSError) as error:
        return _failed(error)
    return status


def _nobody_reads() -> int:
    """Whoever read the output had enough of it; the interpreter must not flush it once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _failed(error: FlapdError | OSError) -> int:
    sentences = error.faults if isinstance(error, ConfigError) else [error]
    for sentence in sentences:
        note(str(sentence))
    could_not = isinstance(error, (CouldNotFindOutError, OSError))
    return COULD_NOT_FIND_OUT if could_not else WRONG_INPUT


def _chosen(arguments: argparse.Namespace) -> int:
    return _COMMANDS[arguments.command](arguments)


def _config(arguments: argparse.Namespace) -> Config:
    return load_config(arguments.config, os.environ)


def _targets(arguments: argparse.Namespace) -> list[Target]:
    if arguments.url is not None:
        return [url_target(arguments.url)]
    return local_targets(_config(arguments))


# Each command imports what it alone needs: `flapd flaps` must not wait for the agent's libraries.


def _run(arguments: argparse.Namespace) -> int:
    from flapd.cli.run import run  # noqa: PLC0415

    return run(_config(arguments), arguments.config)


def _check(arguments: argparse.Namespace) -> int:
    from flapd.cli.check import check_config  # noqa: PLC0415

    return check_config(arguments.config)


def _ports(arguments: argparse.Namespace) -> int:
    from flapd.cli.ports import ports  # noqa: PLC0415

    here = _config(arguments) if arguments.url is None else None
    return ports(_targets(arguments), here, arguments.json)


def _flaps(arguments: argparse.Namespace) -> int:
    from flapd.cli.flaps import flaps  # noqa: PLC0415

    given = {name: getattr(arguments, name) for name in _FILTERS}
    filters = {name: value for name, value in given.items() if value is not None}
    return flaps(_targets(arguments), filters, arguments.json)


def _record(arguments: argparse.Namespace) -> int:
    from flapd.cli.record import record  # noqa: PLC0415

    socket = SocketTarget(Path(_config(arguments).paths.socket))
    return record(socket, arguments.into, arguments.span)


def _replay(arguments: argparse.Namespace) -> int:
    from flapd.cli.replay import replay  # noqa: PLC0415

    return replay(arguments.file, arguments.json)


_COMMANDS = {
    "run": _run,
    "check-config": _check,
    "ports": _ports,
    "flaps": _flaps,
    "record": _record,
    "replay": _replay,
}
