"""What shells complete, by the shells themselves."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from flapd.cli.main import main
from tests.cli.terminal import Terminal, terminal

COMPLETED = [
    ("flapd fl", "flapd flaps"),
    ("flapd status --tok", "flapd status --token-file"),
    ("flapd healthcheck --unknown u", "flapd healthcheck --unknown unhealthy"),
    ("flapd repaired mlx5_1", "flapd repaired mlx5_1/1"),
    ("flapd flaps --port rocep", "flapd flaps --port rocep1s0/1"),
    ("flapd check-config --config conf", "flapd check-config --config conf.toml"),
    ("flapd analyze conf", "flapd analyze conf.toml"),
]
"""What is typed before Tab, and what stands there after it."""


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """A directory with a file and, in `sys`, ports."""
    for device in ("mlx5_0", "mlx5_1", "rocep1s0"):
        (tmp_path / "sys/class/infiniband" / device / "ports/1").mkdir(parents=True)
    (tmp_path / "conf.toml").touch()
    return tmp_path


def script(shell: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


def needed(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"there is no {shell} here: make system-packages brings it")
    return found


@contextmanager
def typing(node: Path, *start: str) -> Iterator[Terminal]:
    """A shell that has its prompt."""
    with terminal() as shown:
        shown.start(*start, PS1="$ ", HOME=str(node), FLAPD_PATHS__SYSFS=f"{node}/sys")
        shown.shows("$")
        shown.type(f"cd {node}\n")
        yield shown


def check(shown: Terminal) -> None:
    for number, (typed, completed) in enumerate(COMPLETED):
        shown.type(f"clear; : {number}\n")
        shown.type(typed)
        shown.shows(typed)
        shown.type("\t")
        is_completed = partial(stands_at_the_prompt, shown, completed)
        shown.until(is_completed, f"{completed!r} at the prompt")
        shown.type("\x15")


def stands_at_the_prompt(shown: Terminal, text: str) -> bool:
    prompts = [line.partition("$ ")[2] for line in shown.lines() if "$ " in line]
    return bool(prompts) and prompts[-1] == text


def test_bash_completes_commands_options_values_ports_and_files(
    node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / "flapd.bash").write_text(script("bash", capsys))
    with typing(node, needed("bash"), "--norc", "--noprofile", "-i") as shown:
        shown.type("source ./flapd.bash\n")
        check(shown)


def test_zsh_completes_commands_options_values_ports_and_files(
    node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / "functions").mkdir()
    (node / "functions/_flapd").write_text(script("zsh", capsys))
    with typing(node, needed("zsh"), "-f", "-i") as shown:
        shown.type("fpath=($PWD/functions $fpath); autoload -U compinit; compinit -u -D\n")
        check(shown)


def test_fish_completes_commands_options_values_ports_and_files(
    node: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (node / "flapd.fish").write_text(script("fish", capsys))
    for typed, completed in COMPLETED:
        asked = f"source flapd.fish; complete -C '{typed}'"
        done = subprocess.run(
            [needed("fish"), "--no-config", "-c", asked],
            cwd=node,
            env={"HOME": str(node), "FLAPD_PATHS__SYSFS": f"{node}/sys", "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=True,
        )
        assert [line.partition("\t")[0] for line in done.stdout.splitlines()] == [
            completed.split()[-1]
        ]
        assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_where_there_is_no_port_none_is_offered(
    tmp_path: Path, shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "script").write_text(script(shell, capsys))
    # What zsh has only while it completes.
    zsh = "compdef() { :; }; _arguments() { :; }; compadd() { shift; print -l -- $@; }"
    ask = {
        "bash": "source ./script; _flapd_ports ''",
        "zsh": f"{zsh}; source ./script; _flapd_ports",
        "fish": "source ./script; _flapd_ports",
    }
    done = subprocess.run(
        [needed(shell), "-c", ask[shell]],
        cwd=tmp_path,
        env={"FLAPD_PATHS__SYSFS": str(tmp_path), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.stdout.strip(), done.stderr) == ("", "")
