"""Arguments: what can be typed."""

import argparse
from pathlib import Path
from typing import TypeAlias

from flapd import __version__
from flapd.cli.advise_options import add_advise_options
from flapd.cli.analyze_options import add_analyze_options
from flapd.cli.budget_options import add_budget_options
from flapd.cli.cost_options import add_cost_options, add_policy_options
from flapd.cli.values import seconds, whole

MOST_FLAPS = 100_000

# argparse gives the type no other name.
_Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001

_TIME = "RFC 3339, unix seconds, or an age such as 2h"


def parser() -> argparse.ArgumentParser:
    """Every command and its options; `command` is the one chosen."""
    flapd = argparse.ArgumentParser(
        prog="flapd",
        description="Finds flapping fabric links in GPU training clusters.",
        epilog="Exit status: 0 done, 1 a negative answer, 2 wrong use or input, "
        "3 could not find out.",
    )
    flapd.add_argument("--version", action="version", version=f"flapd {__version__}")
    commands = flapd.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add_looking(commands)
    _add_telling(commands)
    _add_agent(commands)
    price = _add(commands, "cost", "price a flap, step by step", _config_option(), _json_option())
    add_cost_options(price)
    _add_advising(commands)
    return flapd


def _add_advising(commands: _Commands) -> None:
    advice = _add(commands, "advise", "say which timeout and which drain", _data_options())
    add_advise_options(advice)
    add_policy_options(advice)
    step = _add(commands, "budget", "say where the time of a step goes", _data_options())
    add_budget_options(step)
    offline = (_config_option(), _json_option())
    add_analyze_options(_add(commands, "analyze", "tell what logs and dumps tell", *offline))


def _add_looking(commands: _Commands) -> None:
    data = _data_options()
    _add(commands, "status", "say whether all is well, and what is not", data)
    watch = (_config_option(), _token_option(), _url_option())
    _add_utc(_add(commands, "watch", "show the same live, with what happened last", *watch))
    _add_ports(_add(commands, "ports", "list every port of this node", data))
    _add_flaps(_add(commands, "flaps", "list the outages there were", data))
    _add_incidents(_add(commands, "incidents", "list what hurt jobs", data))
    _add_why(_add(commands, "why", "tell one incident in order of time", data))
    _add_healthcheck(_add(commands, "healthcheck", "say whether a job may run here", data))


def _add_telling(commands: _Commands) -> None:
    local = (_config_option(), _json_option())
    _add_maintenance(_add(commands, "maintenance", "tell of planned work, or show it", *local))
    _add_repaired(_add(commands, "repaired", "tell that cable or module was replaced", *local))


def _add_agent(commands: _Commands) -> None:
    config, json = _config_option(), _json_option()
    _add(commands, "run", "run the agent in the foreground", config)
    _add(commands, "hub", "run the hub of a fleet in the foreground", config)
    _add(commands, "check-config", "say what is wrong with the configuration", config, json)
    packing = (config, json, _token_option())
    _add_capture(_add(commands, "capture", "pack what support needs into a file", *packing))
    _add_record(_add(commands, "record", "record this node's observations", config, json))
    _add_replay(_add(commands, "replay", "run a recording through the engine", json))
    _add_completion(_add(commands, "completion", "print what a shell completes flapd by"))


def _add(
    commands: _Commands, name: str, purpose: str, *parents: argparse.ArgumentParser
) -> argparse.ArgumentParser:
    return commands.add_parser(name, help=purpose, description=purpose, parents=list(parents))


def _config_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--config", type=Path, metavar="FILE", help="instead of /etc/flapd/flapd.toml"
    )
    return options


def _json_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--json", action="store_true", help="JSON instead of text")
    return options


def _data_options() -> argparse.ArgumentParser:
    parents = [_config_option(), _json_option(), _token_option(), _url_option()]
    return argparse.ArgumentParser(add_help=False, parents=parents)


def _url_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument("--url", help="a remote agent or hub, instead of the agent on this node")
    return options


def _token_option() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(add_help=False)
    options.add_argument(
        "--token-file", type=Path, metavar="FILE", help="holds the token that the agent may want"
    )
    return options


def _add_ports(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--from", dest="capture", type=Path, metavar="FILE", help="of a capture, not of this node"
    )
    command.add_argument("--node", metavar="N", help="of a hub")


def _add_flaps(command: argparse.ArgumentParser) -> None:
    command.add_argument("id", nargs="?", metavar="ID", help="all there is of this outage")
    _add_filters(command)
    command.add_argument("--guid", metavar="G", help="of the node, which stays when names change")
    command.add_argument("--kind", metavar="K", help="flap or drop")
    command.add_argument("--layer", metavar="L", help="physical or logical")
    command.add_argument("--seen", metavar="S", help="observed, unseen or while_away")


def _add_filters(command: argparse.ArgumentParser) -> None:
    command.add_argument("--since", metavar="T", help=f"{_TIME} (default: 24h)")
    command.add_argument("--until", metavar="T", help=_TIME)
    command.add_argument("--port", metavar="P", help="such as mlx5_0/1")
    command.add_argument("--min-down", metavar="S", help="seconds, or a duration such as 500ms")
    command.add_argument("--cause", metavar="C", help="such as link or subnet")
    command.add_argument("--status", metavar="S", help="open or closed; a flap also lost")
    command.add_argument("--job", metavar="J", help="the id of a job")
    command.add_argument("--node", metavar="N", help="of a hub")
    command.add_argument(
        "--limit",
        type=whole(1, MOST_FLAPS),
        default=1000,
        metavar="N",
        help="how many (default: 1000)",
    )
    _add_utc(command)


def _add_incidents(command: argparse.ArgumentParser) -> None:
    _add_filters(command)
    command.add_argument("--verdict", metavar="V", help="such as caused or elsewhere")
    command.add_argument("--regime", metavar="R", help="such as absorbed or watchdog")


def _add_why(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "asked", nargs="?", metavar="ID|TIME", help="default: the latest; TIME: 03:12, 2h, RFC 3339"
    )
    command.add_argument("--job", metavar="J", help="the latest of this job")
    _add_utc(command)


def _add_utc(command: argparse.ArgumentParser) -> None:
    command.add_argument("--utc", action="store_true", help="times in UTC, not in local time")


def _add_healthcheck(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--max-flaps",
        type=whole(0, 1_000_000),
        default=3,
        metavar="N",
        help="of one port (default: 3)",
    )
    command.add_argument(
        "--window", type=seconds, default="1h", metavar="S", help="in so long (default: 1h)"
    )
    command.add_argument(
        "--unknown",
        choices=("healthy", "unhealthy"),
        default="healthy",
        help="what it is where that cannot be told (default: healthy)",
    )


def _add_maintenance(command: argparse.ArgumentParser) -> None:
    command.add_argument("--for", dest="for_seconds", type=seconds, metavar="S", help="such as 2h")
    command.add_argument("--reason", metavar="TEXT", help="what is done")
    command.add_argument("--port", metavar="P", help="such as mlx5_0/1, instead of all")
    command.add_argument("--end", action="store_true", help="end all planned work now")


def _add_repaired(command: argparse.ArgumentParser) -> None:
    command.add_argument("port", metavar="PORT", help="such as mlx5_0/1")
    command.add_argument("--note", default="", metavar="TEXT", help="what was done")


def _add_capture(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", dest="into", type=Path, required=True, metavar="FILE")
    command.add_argument("--force", action="store_true", help="replace a file that is there")


def _add_record(command: argparse.ArgumentParser) -> None:
    command.add_argument("-o", dest="into", type=Path, required=True, metavar="FILE")
    command.add_argument(
        "--for", dest="span", default="10m", metavar="S", help="how long (default: 10m)"
    )


def _add_replay(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", type=Path, metavar="FILE")
    _add_utc(command)


def _add_completion(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", choices=("bash", "zsh", "fish"), help="which shell")
