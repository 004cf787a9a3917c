"""The command `flapd`: which command it is, and how it ends."""

import argparse
import os
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from flapd.cli.arguments import parser
from flapd.cli.output import give_up_stdout, note
from flapd.cli.target import SocketTarget, Target, local_targets, token_in, url_target
from flapd.config import Config, ConfigError, load_config
from flapd.model.errors import CouldNotFindOutError, FlapdError

WRONG_INPUT = 2
COULD_NOT_FIND_OUT = 3
INTERRUPTED = 130

_FILTERS = ("since", "until", "port", "min_down", "cause", "status", "job", "node")
_FLAP_FILTERS = (*_FILTERS, "guid", "kind", "layer", "seen")
_INCIDENT_FILTERS = (*_FILTERS, "verdict", "regime")


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
        give_up_stdout()
        return 0
    except (FlapdError, OSError) as error:
        return _failed(error)
    return status


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
    token = _token(arguments)
    if arguments.url is not None:
        return [url_target(arguments.url, token)]
    return local_targets(_config(arguments), token)


def _token(arguments: argparse.Namespace) -> str | None:
    return None if arguments.token_file is None else token_in(arguments.token_file)


def _socket(arguments: argparse.Namespace) -> SocketTarget:
    """Of the agent on this node: it alone takes what changes something."""
    return SocketTarget(Path(_config(arguments).paths.socket))


# Each command imports what it alone needs: `flapd flaps` must not wait for the agent's libraries.


def _run(arguments: argparse.Namespace) -> int:
    from flapd.cli.run import run  # noqa: PLC0415

    return run(_config(arguments), arguments.config)


def _hub(arguments: argparse.Namespace) -> int:
    from flapd.cli.hub import hub  # noqa: PLC0415

    return hub(_config(arguments), arguments.config)


def _check(arguments: argparse.Namespace) -> int:
    from flapd.cli.check import check_config  # noqa: PLC0415

    return check_config(arguments.config, arguments.json)


def _status(arguments: argparse.Namespace) -> int:
    from flapd.cli.status import status  # noqa: PLC0415

    return status(_targets(arguments), arguments.json)


def _watch(arguments: argparse.Namespace) -> int:
    from flapd.cli.watch import watch  # noqa: PLC0415

    return watch(_targets(arguments), arguments.utc)


def _ports(arguments: argparse.Namespace) -> int:
    from flapd.cli.ports import captured, ports  # noqa: PLC0415

    if arguments.capture is not None:
        for name in ("url", "node"):
            if getattr(arguments, name) is not None:
                raise FlapdError(f"--{name} and --from do not go together")
        return captured(arguments.capture, arguments.json)
    is_here = arguments.url is None and arguments.node is None
    here = _config(arguments) if is_here else None
    return ports(_targets(arguments), here, arguments.json, arguments.node)


def _flaps(arguments: argparse.Namespace) -> int:
    filters = _given(arguments, _FLAP_FILTERS)
    if arguments.id is not None:
        return _flap(arguments, filters)
    from flapd.cli.flaps import flaps  # noqa: PLC0415

    filters.setdefault("since", "24h")
    targets = _targets(arguments)
    return flaps(targets, filters, arguments.limit, arguments.json, arguments.utc)


def _flap(arguments: argparse.Namespace, filters: dict[str, str]) -> int:
    from flapd.cli.flap import flap  # noqa: PLC0415

    if filters:
        raise FlapdError("an ID names one outage: it goes with no option that narrows down")
    return flap(_targets(arguments), arguments.id, arguments.json, arguments.utc)


def _given(arguments: argparse.Namespace, names: Sequence[str]) -> dict[str, str]:
    given = {name: getattr(arguments, name) for name in names}
    return {name: value for name, value in given.items() if value is not None}


def _incidents(arguments: argparse.Namespace) -> int:
    from flapd.cli.incidents import incidents  # noqa: PLC0415

    filters = {"since": "24h", **_given(arguments, _INCIDENT_FILTERS)}
    targets = _targets(arguments)
    return incidents(targets, filters, arguments.limit, arguments.json, arguments.utc)


def _why(arguments: argparse.Namespace) -> int:
    from flapd.cli.why import why  # noqa: PLC0415

    filters = _given(arguments, ("job",))
    return why(_targets(arguments), arguments.asked, filters, arguments.json, arguments.utc)


def _healthcheck(arguments: argparse.Namespace) -> int:
    try:
        from flapd.cli.healthcheck import healthcheck  # noqa: PLC0415
    except ImportError as error:  # of a flapd that is being replaced just now
        note(f"nothing is known: {error}")
        return 1 if arguments.unknown == "unhealthy" else 0
    return healthcheck(
        partial(_targets, arguments),
        arguments.max_flaps,
        arguments.window,
        arguments.unknown,
        arguments.json,
        lambda: _config(arguments).node.name,
    )


def _maintenance(arguments: argparse.Namespace) -> int:
    from flapd.cli.maintenance import Wish, maintenance  # noqa: PLC0415

    wish = Wish(arguments.for_seconds, arguments.reason, arguments.port, arguments.end)
    return maintenance(_socket(arguments), wish, arguments.json)


def _repaired(arguments: argparse.Namespace) -> int:
    from flapd.cli.maintenance import repaired  # noqa: PLC0415

    return repaired(_socket(arguments), arguments.port, arguments.note, arguments.json)


def _capture(arguments: argparse.Namespace) -> int:
    from flapd.cli.capture import capture  # noqa: PLC0415

    return capture(
        _config(arguments),
        local_targets(_config(arguments), _token(arguments)),
        arguments.into,
        force=arguments.force,
        prints_json=arguments.json,
    )


def _record(arguments: argparse.Namespace) -> int:
    from flapd.cli.record import record  # noqa: PLC0415

    return record(_socket(arguments), arguments.into, arguments.span, arguments.json)


def _replay(arguments: argparse.Namespace) -> int:
    from flapd.cli.replay import replay  # noqa: PLC0415

    return replay(arguments.file, arguments.json, arguments.utc)


def _completion(arguments: argparse.Namespace) -> int:
    from flapd.cli.completion import completion  # noqa: PLC0415

    return completion(arguments.shell)


def _cost(arguments: argparse.Namespace) -> int:
    from flapd.cli.cost import cost  # noqa: PLC0415

    return cost(arguments, _config(arguments), _socket(arguments))


def _advise(arguments: argparse.Namespace) -> int:
    from flapd.cli.advise import advise  # noqa: PLC0415

    config = _config(arguments)
    targets = [] if arguments.durations is not None else _targets(arguments)
    return advise(arguments, targets, config)


def _budget(arguments: argparse.Namespace) -> int:
    from flapd.cli.budget import budget  # noqa: PLC0415

    return budget(arguments, _targets(arguments), _config(arguments))


def _analyze(arguments: argparse.Namespace) -> int:
    from flapd.cli.analyze import analyze  # noqa: PLC0415

    return analyze(arguments, _config(arguments))


_COMMANDS = {
    "run": _run,
    "hub": _hub,
    "check-config": _check,
    "status": _status,
    "watch": _watch,
    "ports": _ports,
    "flaps": _flaps,
    "incidents": _incidents,
    "why": _why,
    "healthcheck": _healthcheck,
    "maintenance": _maintenance,
    "repaired": _repaired,
    "capture": _capture,
    "record": _record,
    "replay": _replay,
    "completion": _completion,
    "cost": _cost,
    "advise": _advise,
    "budget": _budget,
    "analyze": _analyze,
}
