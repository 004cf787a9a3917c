"""Lays out what a package installs, below a directory.

/usr/lib/flapd is a virtual environment of the distribution's own Python, so that the agent's
children (`sys.executable -m`) find the same modules, and the distribution's pyverbs is seen.
"""

import os
import subprocess
import sys
from pathlib import Path

from deploy.packages import wheels
from deploy.packages.distributions import Distribution

ROOT = Path(__file__).parents[2]
HOME = Path("usr/lib/flapd")
_PROGRAM = f"""#!/{HOME}/bin/python -I
from flapd.cli.main import entry
raise SystemExit(entry())
"""
_INSTALLED_AS = "/opt/flapd/bin/flapd"
"""What the unit starts where scripts/install-node put it."""
_COMPLETION = {
    "bash": "usr/share/bash-completion/completions/flapd",
    "zsh": "usr/share/zsh/site-functions/_flapd",
    "fish": "usr/share/fish/vendor_completions.d/flapd.fish",
}


def lay_out(tree: Path, distribution: Distribution, machine: str, scratch: Path) -> None:
    _lay_out_service(tree, distribution)
    _lay_out_environment(tree / HOME, distribution.python)
    site = tree / HOME / f"lib/python{distribution.python}/site-packages"
    wheels.fill(site, distribution, machine, scratch)
    for drop_in in sorted((ROOT / "systemd/drop-ins").glob("*.conf")):
        if drop_in.name != "backoff.conf":  # it is in force where systemd knows it
            _write(tree / HOME / "drop-ins" / drop_in.name, drop_in.read_text())
    for shell, path in _COMPLETION.items():
        _write(tree / path, _printed("completion", shell))
    _write(tree / "usr/share/doc/flapd/copyright", (ROOT / "LICENSE").read_text())
    _write(tree / "usr/share/doc/flapd/changelog.md", (ROOT / "CHANGELOG.md").read_text())


def _lay_out_service(tree: Path, distribution: Distribution) -> None:
    environment = {**os.environ, "DESTDIR": str(tree), "SYSTEMD": str(distribution.systemd)}
    subprocess.run([ROOT / "scripts/install-node"], check=True, env=environment)
    for name in ("flapd.service", "flapd-hub.service"):
        unit = tree / "usr/lib/systemd/system" / name
        unit.write_text(unit.read_text().replace(_INSTALLED_AS, f"/{HOME}/bin/flapd"))


def _lay_out_environment(home: Path, python: str) -> None:
    _write(home / "pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = true\n")
    _write(home / "bin/flapd", _PROGRAM)
    (home / "bin/flapd").chmod(0o755)
    (home / "bin/python").symlink_to(f"/usr/bin/python{python}")


def _printed(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "flapd", *arguments],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o644)
