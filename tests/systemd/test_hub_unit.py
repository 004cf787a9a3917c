"""The hub's unit as systemd reads it, and the configuration that goes with it."""

import re
import shutil
from pathlib import Path

from flapd.config import load_config
from tests.systemd.test_unit import HOST_UNITS, UNITS, analyze, needs_systemd, settings

UNIT = "flapd-hub.service"
WORST_EXPOSURE = 1.5


def installed(root: Path) -> Path:
    place = root / str(HOST_UNITS).lstrip("/")
    place.mkdir(parents=True)
    for pattern in ("*.target", "*.slice", "*.socket"):
        for unit in HOST_UNITS.glob(pattern):
            (place / unit.name).write_text(unit.read_text())
    for program in ("opt/flapd/bin/flapd", "bin/sh"):
        (root / program).parent.mkdir(parents=True, exist_ok=True)
        (root / program).touch(mode=0o755)
    shutil.copy(UNITS / UNIT, place)
    return root


@needs_systemd
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    verified = analyze("verify", f"--root={installed(tmp_path)}", f"{HOST_UNITS}/{UNIT}")

    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


@needs_systemd
def test_its_exposure_is_lower_than_the_agents(tmp_path: Path) -> None:
    judged = analyze("security", "--offline=true", f"--root={installed(tmp_path)}", UNIT)

    level = re.search(rf"exposure level for {UNIT}: ([0-9.]+)", judged.stdout)
    assert level is not None, judged.stderr
    assert float(level[1]) <= WORST_EXPOSURE


def test_the_configuration_keeps_its_files_where_the_unit_makes_room_for_them() -> None:
    unit, config = settings(UNITS / UNIT), load_config(UNITS / "hub.toml", {})

    assert config.paths.state == f"/var/lib/{unit['StateDirectory'][0]}"
    assert Path(config.paths.socket).parent == Path("/run", unit["RuntimeDirectory"][0])
    assert config.fleet.servers
    agent = load_config(UNITS / "flapd.toml", {})
    assert config.http.listen != agent.http.listen
    assert config.paths.socket != agent.paths.socket
