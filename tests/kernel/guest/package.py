"""In a virtual machine with systemd: flapd's package in the hands of dpkg, from first to last."""

import subprocess
import time
from pathlib import Path
from typing import Any, NamedTuple

from tests.kernel.guest.links import Moment, flap, run, switch

FILES = Path("/payload/package")
OLDER, NEWER, COMPILED = FILES / "older.deb", FILES / "newer.deb", FILES / "compiled.tar"
NEWER_VERSION = "9.9.9"
LEFT_BEHIND = ("/var/lib/flapd/history.sqlite", "/etc/flapd/flapd.toml")
"""By a removal; a purge takes them too."""
_INSTALL = ("dpkg", "--force-unsafe-io", "--install")
_BEFORE_THE_PACKAGE = Path("/payload/root")
_FIND = ("find", "/usr", "/etc", "/var/lib", "/run", "-xdev", "-path", "/run/systemd", "-prune",
         "-o", "-path", "*flapd*", "-print")  # fmt: skip
_COMPILER = Path("/usr/local/bin/nice")
_COMPILES = f"""#!/bin/sh
# The package's script compiles with `nice`, here what was not compiled on the host.
tar -xf {COMPILED} --no-same-owner -C /usr/lib/flapd
exec /usr/bin/nice "$@"
"""
_PAUSE_SECONDS = 5.0
"""A port that flaps all the time keeps the agent busy, and this machine."""


class Said(NamedTuple):
    """By dpkg and the scripts of the package, which it ran."""

    status: int
    text: str


def first_installed() -> dict[str, Any]:
    """On a node that never had flapd."""
    _take_away_the_script_s()
    _COMPILER.write_text(_COMPILES)
    _COMPILER.chmod(0o755)
    said = install(OLDER)
    return {"said": said, "state": _state_of_unit(), "user": _is_there("/etc/passwd", "flapd:")}


def _take_away_the_script_s() -> None:
    """What scripts/install-node had laid out, as docs/install.md says; the user as well."""
    run("umount /opt/flapd")
    for file in _BEFORE_THE_PACKAGE.rglob("*"):
        if file.is_file():
            Path("/", file.relative_to(_BEFORE_THE_PACKAGE)).unlink()
    run("userdel flapd")


def install(file: Path) -> Said:
    return _dpkg(*_INSTALL, str(file))


def installed_amid_flaps(file: Path, peer: str) -> tuple[Said, list[dict[str, Moment]]]:
    """The flaps begin before it does and go on until it has ended."""
    true = [flap(switch(peer), 0.3)]
    with subprocess.Popen(
        [*_INSTALL, str(file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as dpkg:
        while dpkg.poll() is None:
            time.sleep(_PAUSE_SECONDS)
            true.append(flap(switch(peer), 0.3))
        text = dpkg.stdout.read() if dpkg.stdout is not None else ""
    return Said(dpkg.returncode, text), true


def taken_away() -> dict[str, Any]:
    """Removed while it runs, then purged; what is still there after each."""
    removed = _dpkg("dpkg", "--remove", "flapd")
    after_removal = {"state": _state_of_unit(), "there": _there()}
    purged = _dpkg("dpkg", "--purge", "flapd")
    return {
        "removed": removed,
        "after_removal": after_removal,
        "purged": purged,
        "after_purge": {"state": _state_of_unit(), "there": _there()},
    }


def _there() -> list[str]:
    """Files and directories named after flapd where a package, or what it starts, puts any."""
    listed = subprocess.run(_FIND, check=True, capture_output=True, text=True, timeout=60)
    return sorted(listed.stdout.splitlines())


def _state_of_unit() -> str:
    """Of `systemctl is-active`: inactive too where there is no such unit."""
    asked = ("systemctl", "show", "flapd", "--property=ActiveState,LoadState", "--value")
    done = subprocess.run(asked, check=True, capture_output=True, text=True, timeout=60)
    return " ".join(sorted(done.stdout.split()))


def _is_there(file: str, begin: str) -> bool:
    return any(line.startswith(begin) for line in Path(file).read_text().splitlines())


def _dpkg(*command: str) -> Said:
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
        check=False,
    )
    return Said(done.returncode, done.stdout)
