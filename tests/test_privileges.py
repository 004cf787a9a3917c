"""Capabilities of real processes, started as systemd starts the unit with a drop-in."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parent.parent
SYSLOG = 1 << 34

AGENT_AND_CHILD = """
import subprocess
from flapd.privileges import lay_down_capabilities
lay_down_capabilities()
print(open("/proc/self/status").read())
child = subprocess.run(["cat", "/proc/self/status"], check=True, capture_output=True, text=True)
print("CHILD", child.stdout)
"""


def effective(status: str) -> int:
    told = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    assert told is not None
    return int(told[1], 16)


def as_user_with(*capabilities: str) -> tuple[str, str]:
    """What /proc says of a process that has laid them down, and of its child."""
    if shutil.which("setpriv") is None:
        pytest.skip("setpriv is not here (package util-linux)")
    given = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    ids = ("--reuid=1000", "--regid=1000", "--clear-groups", "--no-new-privs")
    sets = (f"--inh-caps={given}", f"--ambient-caps={given}")
    ran = subprocess.run(
        ["setpriv", *ids, *sets, sys.executable, "-c", AGENT_AND_CHILD],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    if "setpriv" in ran.stderr or "Permission denied" in ran.stderr:
        pytest.skip(f"a process of another user cannot be had: {ran.stderr.strip()}")
    assert ran.returncode == 0, ran.stderr
    agent, _, child = ran.stdout.partition("CHILD")
    return agent, child


def test_the_agent_has_none_in_effect_and_the_reader_it_starts_has() -> None:
    agent, child = as_user_with("syslog")

    assert effective(agent) == 0
    assert effective(child) == SYSLOG


def test_who_has_none_goes_on_without() -> None:
    agent, child = as_user_with()

    assert effective(agent) == effective(child) == 0
