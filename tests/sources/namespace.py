"""A network namespace of its own, with a sysfs of its own, for what needs a real kernel's netdevs.

A scenario is a function without arguments in `tests.sources.link_scenarios` whose result is JSON.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
_UNSHARE = ["unshare", "--map-root-user", "--net", "--mount"]
_MODULE = "tests.sources.link_scenarios"
_AS_ITS_OWN = f'mount -t sysfs sysfs /sys && exec {sys.executable} -W error -m {_MODULE} "$0"'


def in_namespace(scenario: str) -> Any:
    """What it found; skipped where namespaces cannot be had."""
    possible = subprocess.run([*_UNSHARE, "true"], check=False, capture_output=True)
    if possible.returncode != 0:
        pytest.skip(f"no namespaces here: {possible.stderr.decode().strip()}")
    ran = subprocess.run(
        [*_UNSHARE, "sh", "-c", _AS_ITS_OWN, scenario],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)
