"""The unit as systemd reads it, installed below a directory of the test's own."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from flapd.config import DEFAULT_PATH, Config, load_config
from flapd.lifecycle import END_WITHIN_SECONDS

ROOT = Path(__file__).parent.parent.parent
UNITS = ROOT / "systemd"
WORST_EXPOSURE = 2.5
HOST_UNITS = Path("/usr/lib/systemd/system")
DROP_INS_FOR_252 = ("clock.conf", "jobs.conf", "kernel-log.conf", "module-eeprom.conf")

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not here (package systemd)"
)


def settings(unit: Path) -> dict[str, list[str]]:
    """Key -> its values in order; keys are in one section each."""
    found: dict[str, list[str]] = {}
    for line in unit.read_text().splitlines():
        if match := re.fullmatch(r"(\w+)=(.*)", line):
            found.setdefault(match[1], []).append(match[2])
    return found


UNIT = settings(UNITS / "flapd.service")


def install(root: Path) -> None:
    subprocess.run(
        [ROOT / "scripts/install-node"], check=True, env={**os.environ, "DESTDIR": str(root)}
    )


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root directory with flapd installed, and the system's targets to order it by."""
    install(tmp_path)
    for pattern in ("*.target", "*.slice", "*.socket"):
        for unit in HOST_UNITS.glob(pattern):
            place = tmp_path / str(HOST_UNITS).lstrip("/") / unit.name
            place.write_text(unit.read_text())
    for program in ("opt/flapd/bin/flapd", "bin/sh"):
        place = tmp_path / program
        place.parent.mkdir(parents=True, exist_ok=True)
        place.touch(mode=0o755)
    return tmp_path


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["systemd-analyze", *arguments], capture_output=True, text=True, check=False, timeout=60
    )


@needs_systemd
@pytest.mark.parametrize("drop_in", [None, *DROP_INS_FOR_252])
def test_systemd_finds_nothing_wrong_with_the_unit(root: Path, drop_in: str | None) -> None:
    if drop_in is not None:
        drop_ins = root / "etc/systemd/system/flapd.service.d"
        drop_ins.mkdir(parents=True)
        shutil.copy(UNITS / "drop-ins" / drop_in, drop_ins)

    verified = analyze("verify", f"--root={root}", "/usr/lib/systemd/system/flapd.service")

    assert (verified.returncode, verified.stdout + verified.stderr) == (0, "")


@needs_systemd
def test_what_systemd_objects_to_is_seen_by_the_test_above(root: Path) -> None:
    unit = root / "usr/lib/systemd/system/flapd.service"
    unit.write_text(unit.read_text().replace("NoNewPrivileges=", "NoNewPrivilege="))

    verified = analyze("verify", f"--root={root}", "/usr/lib/systemd/system/flapd.service")

    assert "Unknown key" in verified.stderr


@needs_systemd
@pytest.mark.parametrize(
    "drop_ins", [(), ("jobs.conf",), ("kernel-log.conf", "module-eeprom.conf")]
)
def test_its_exposure_is_low_also_with_what_a_reader_can_be_given(
    root: Path, drop_ins: tuple[str, ...]
) -> None:
    place = root / "etc/systemd/system/flapd.service.d"
    place.mkdir(parents=True)
    for drop_in in drop_ins:
        shutil.copy(UNITS / "drop-ins" / drop_in, place)

    judged = analyze("security", "--offline=true", f"--root={root}", "flapd.service")

    level = re.search(r"exposure level for flapd.service: ([0-9.]+)", judged.stdout)
    assert level is not None, judged.stderr
    assert float(level[1]) <= WORST_EXPOSURE


@needs_systemd
def test_the_user_is_made_as_the_unit_wants_it(root: Path) -> None:
    subprocess.run(["systemd-sysusers", f"--root={root}", "flapd.conf"], check=True, timeout=60)

    accounts = (root / "etc/passwd").read_text(), (root / "etc/group").read_text()
    assert [accounts[0].partition(":")[0], accounts[1].partition(":")[0]] == ["flapd", "flapd"]
    assert UNIT["User"] == UNIT["Group"] == ["flapd"]


def test_an_agent_that_fails_is_started_again_for_ever() -> None:
    assert UNIT["Restart"] == ["on-failure"]
    assert UNIT["StartLimitIntervalSec"] == ["0"]


def test_the_ring_outlives_a_restart() -> None:
    """The next agent needs what it holds of the time in which nobody ran."""
    assert UNIT["RuntimeDirectoryPreserve"] == ["yes"]


def test_every_kind_of_socket_that_the_agent_opens_is_allowed() -> None:
    allowed = UNIT["RestrictAddressFamilies"][0].split()

    assert sorted(allowed) == ["AF_INET", "AF_INET6", "AF_NETLINK", "AF_UNIX"]


def test_it_runs_without_any_capability() -> None:
    assert UNIT["CapabilityBoundingSet"] == UNIT["AmbientCapabilities"] == [""]


@pytest.mark.parametrize(
    "key",
    [
        "PrivateDevices",
        "PrivateNetwork",
        "PrivateUsers",
        "PrivateTmp",
        "CPUQuota",
        "InaccessiblePaths",
    ],
)
def test_the_unit_takes_nothing_away_that_reading_needs(key: str) -> None:
    assert key not in UNIT


def test_the_processes_of_jobs_stay_visible() -> None:
    assert UNIT["ProtectProc"] == ["default"]
    assert UNIT["ProcSubset"] == ["all"]


def test_the_agent_has_ended_before_systemd_loses_patience() -> None:
    assert float(UNIT["TimeoutStopSec"][0]) > END_WITHIN_SECONDS


def test_the_default_paths_are_those_that_the_unit_makes() -> None:
    paths = Config().paths

    assert paths.state == f"/var/lib/{UNIT['StateDirectory'][0]}"
    assert paths.ring.startswith(f"/run/{UNIT['RuntimeDirectory'][0]}/")
    assert paths.socket.startswith(f"/run/{UNIT['RuntimeDirectory'][0]}/")
    assert DEFAULT_PATH.parent == Path("/etc") / UNIT["ConfigurationDirectory"][0]


def test_the_example_of_a_configuration_shows_the_defaults(tmp_path: Path) -> None:
    uncommented = tmp_path / "flapd.toml"
    text = (UNITS / "flapd.toml").read_text()
    uncommented.write_text(re.sub(r"^# (?=\w+ = )", "", text, flags=re.MULTILINE))

    assert load_config(UNITS / "flapd.toml", {}) == load_config(uncommented, {}) == Config()


def test_an_installation_keeps_the_configuration_that_is_there(tmp_path: Path) -> None:
    install(tmp_path)
    mine = tmp_path / "etc/flapd/flapd.toml"
    mine.write_text("mine")
    install(tmp_path)

    assert mine.read_text() == "mine"
