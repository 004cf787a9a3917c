"""The unit of a small site's server, as systemd reads it, and what it has to agree with."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.fleet.nats_server import ROOT

DEPLOYED = ROOT / "deploy/nats"
UNIT = "flapd-nats.service"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here")
def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path: Path) -> None:
    for program in ("usr/sbin/nats-server", "bin/kill"):
        (tmp_path / program).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / program).touch(mode=0o755)
    units = tmp_path / "etc/systemd/system"
    units.mkdir(parents=True)
    shutil.copy(DEPLOYED / UNIT, units)
    for target in Path("/usr/lib/systemd/system").glob("*.target"):
        shutil.copy(target, units)

    verified = subprocess.run(
        ["systemd-analyze", "verify", f"--root={tmp_path}", f"/etc/systemd/system/{UNIT}"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


def test_the_server_keeps_its_files_where_the_unit_makes_room_for_them() -> None:
    unit, config = ((DEPLOYED / name).read_text() for name in (UNIT, "nats-server.conf"))
    state = re.search(r"^StateDirectory=(.+)$", unit, re.MULTILINE)
    etc = re.search(r"^ConfigurationDirectory=(.+)$", unit, re.MULTILINE)

    assert state is not None
    assert etc is not None
    assert f'store_dir: "/var/lib/{state[1]}"' in config
    assert f'cert_file: "/etc/{etc[1]}/server.pem"' in config
    assert f"-c /etc/{etc[1]}/nats-server.conf" in unit
