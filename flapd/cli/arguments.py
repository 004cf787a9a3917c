"""Arguments: what can be typed."""

import argparse
from pathlib import Path

from flapd import __version__

_TIME = "RFC 3339, unix seconds, or an age such as 2h"


def parser() -> argparse.ArgumentParser:
    """Every command and its options; `command` is the one chosen."""
    whole = argparse.ArgumentParser(
        prog="flapd",
        description="Finds flapping fabric links in GPU training clusters.",
        epilog="Exit status: 0 done, 1 a negative answer, 2 wrong use or input, "
        "3 could not find out.",
    )
    whole.add_argument("--version", action="version", version=f"flapd {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="COMMAND")
    config, data = _config_option(), _data_options()
    _add(commands, "run", "run the agent in the foreground", config)
    _add(commands, "check-config", "say what is wrong with the configuration", config)
    _add(commands, "ports", "list every port of this node", data)
    _add_flaps(_add(commands, "flaps", "list the outages there were", data))
    _add_record(_add(commands, "record", "record this node's observations", config))
    _add_replay(_add(commands, "replay", "run a recording through the engine", _json_option()))
    return whole


def _add(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
    name: str,
    purpose: str,
    parent: argparse.ArgumentParser,
) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=purpose, description=purpose, parents=[parent])


def _config_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--config", type=Path, metavar="FILE", help="instead of /etc/flapd/flapd.toml"
    )
    return options


def _json_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--json", action="store_true", help="the API's JSON instead of a table")
    return options


def _data_options() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False, parents=[_config_option(), _json_option()])
    options.add_argument("--url", help="a remote agent, instead of the one on this node")
    return options


def _add_flaps(command: argparse.ArgumentParser) -> None:
    command.add_argument("--since", default="24h", metavar="T", help=f"{_TIME} (default: 24h)")
    command.add_argument("--until", metavar="T", help=_TIME)
    command.add_argument("--port", metavar="P", help="such as mlx5_0/1")
    command.add_argument("--min-down", metavar="S", help="seconds, or a duration such as 500ms")
    command.add_argument("--cause", metavar="C", help="such as link or subnet")
    command.add_argument("--status", metavar="S", help="open, closed or lost")
    command.add_argument("--kind", metavar="K", help="flap or drop")
    command.add_argument("--layer", metavar="L", help="physical or logical")
    command.add_argument("--seen", metavar="S", help="observed, unseen or while_away")
    command.add_argument("--limit", metavar="N", help="up to 1000 (default: 100)")


def _add_record(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", dest="into", type=Path, required=True, metavar="FILE")
    command.add_argument(
        "--for", dest="span", default="10m", metavar="S", help="how long (default: 10m)"
    )


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE")
