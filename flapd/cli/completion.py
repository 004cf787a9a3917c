"""`flapd completion`: what a shell needs to complete commands, options, files and ports."""

import argparse
from collections.abc import Iterator

import shtab

from flapd.cli.arguments import parser

_FILES = ("FILE", "LOG")
_PORTS = ("P", "PORT")

_PORTS_OF_THIS_NODE = {
    "bash": "_flapd_ports",
    "zsh": "_flapd_ports",
    "fish": "(_flapd_ports)",
}

# By the shell alone, as the agent finds them: Python takes longer to start than a key to repeat.
_PREAMBLE = {
    "bash": """\
_flapd_ports() {
  local -a ports
  local class="${FLAPD_PATHS__SYSFS:-/sys}/class/infiniband"
  ports=("$class"/*/ports/*)
  ports=("${ports[@]#"$class"/}")
  compgen -W "${ports[*]/\\/ports\\///}" -X '\\**' -- "$1"
}
""",
    "zsh": """\
_flapd_ports() {
  local class="${FLAPD_PATHS__SYSFS:-/sys}/class/infiniband"
  local -a ports
  ports=($class/*/ports/*(N))
  ports=(${ports#$class/})
  compadd -- ${ports/\\/ports\\///}
}
""",
    "fish": """\
function _flapd_ports
  set -q FLAPD_PATHS__SYSFS; or set -l FLAPD_PATHS__SYSFS /sys
  set -l class $FLAPD_PATHS__SYSFS/class/infiniband
  set -l ports $class/*/ports/*
  string replace /ports/ / (string replace $class/ '' $ports)
end
""",
}


def completion(shell: str) -> int:
    """Prints the script; the exit status."""
    described = parser()
    for action in _actions(described):
        if action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]
        elif action.metavar in _PORTS:
            action.complete = _PORTS_OF_THIS_NODE  # type: ignore[attr-defined]
    print(shtab.complete(described, shell, preamble=_PREAMBLE[shell]))
    return 0


def _actions(command: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Of this command and all below it; argparse has no public way to them."""
    for action in command._actions:  # noqa: SLF001
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _actions(below)
