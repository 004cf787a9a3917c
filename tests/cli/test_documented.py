"""docs/commands.md names what can be typed, and nothing else."""

import argparse
import re
import subprocess
from pathlib import Path

from flapd.cli.arguments import parser

DOCUMENT = (Path(__file__).parents[2] / "docs/commands.md").read_text()
ELSEWHERE = {"cost", "advise", "budget"}
"""Commands with a page of their own for their options."""
NOT_FLAPDS = {"-t", "-r", "-s"}
"""Options of other programs in its examples."""


def commands() -> dict[str, argparse.ArgumentParser]:
    (chosen,) = (
        action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    return dict(chosen.choices)


def options(command: argparse.ArgumentParser) -> set[str]:
    return {name for action in command._actions for name in action.option_strings}


def test_every_command_is_documented_and_every_documented_one_exists() -> None:
    documented = re.findall(r"^\| `flapd ([\w-]+)", DOCUMENT, re.MULTILINE)

    assert sorted(documented) == sorted(commands())


def test_every_option_is_documented_and_every_documented_one_exists() -> None:
    known = {
        option
        for name, command in commands().items()
        if name not in ELSEWHERE
        for option in options(command)
    } - {"-h", "--help"}
    documented = set(re.findall(r"(?<![\w-])--?[a-z][\w-]*", DOCUMENT))

    assert documented - NOT_FLAPDS - {"--help"} == known


def test_every_command_that_prints_data_prints_json_too() -> None:
    assert {name for name, command in commands().items() if "--json" not in options(command)} == {
        "run",
        "hub",
        "watch",
        "completion",
    }


def test_the_script_for_schedulers_says_no_only_where_flapd_did(tmp_path: Path) -> None:
    script = re.findall(r"```sh\n(#!/bin/sh\nsaid.+?)```", DOCUMENT, re.DOTALL)
    assert len(script) == 1
    answers = {
        "echo unhealthy: mlx5_0/1 is flapping; exit 1": 1,
        "echo healthy: 8 ports watched; exit 0": 0,
        "echo Traceback >&2; exit 1": 0,
        "exit 127": 0,
    }

    for does, status in answers.items():
        flapd = tmp_path / "flapd"
        flapd.write_text(f"#!/bin/sh\n{does}\n")
        flapd.chmod(0o755)
        text = script[0].replace("/opt/flapd/bin/flapd", str(flapd))
        assert subprocess.run(["sh", "-c", text], check=False).returncode == status, does
