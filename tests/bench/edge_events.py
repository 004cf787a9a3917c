"""Edge, with events: how long after a real netdev lost its carrier everybody can ask for it."""

import json
import os
import shutil
import subprocess
import sys

from simulators.fabric.mount import fuse_missing
from tests.bench.figure import Figure, Scale, percentile
from tests.system.harness import ROOT

_BUDGET_MS = 25.0
_FLAPS_A_PORT = 10
"""There is but one port here."""
_SECONDS_A_FLAP = 2.0
_START_SECONDS = 60.0
_OWN_SYS = 'mount -t sysfs sysfs /sys && exec "$@"'
_IN_A_NAMESPACE = ("unshare", "-n", "-m", "sh", "-c", _OWN_SYS, "sh")


def edge_to_record_with_events(scale: Scale) -> list[Figure]:
    why_not = _missing()
    if why_not is not None:
        return [_figure(None, f"no real netdev: {why_not}")]
    flaps = scale.flaps_a_port * _FLAPS_A_PORT
    ran = subprocess.run(
        [*_IN_A_NAMESPACE, sys.executable, "-m", "tests.bench.veth_edges", str(flaps)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_START_SECONDS + flaps * _SECONDS_A_FLAP,
        check=False,
    )
    if ran.returncode != 0:
        return [_figure(None, f"no veth in a namespace of its own: {ran.stderr.strip()[-200:]}")]
    late_ms: list[float] = json.loads(ran.stdout)
    median = percentile(late_ms, 0.5)
    return [_figure(percentile(late_ms, 0.99), f"{flaps} edges, median {median:.0f} ms")]


def _missing() -> str | None:
    if os.geteuid() != 0:
        return "making a network namespace needs root"
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            return f"there is no program {program}"
    return fuse_missing()


def _figure(value: float | None, note: str) -> Figure:
    return Figure(
        what="edge to queryable record, rtnetlink on veth: p99",
        unit="ms",
        value=value,
        budget=_BUDGET_MS,
        note=note,
    )
