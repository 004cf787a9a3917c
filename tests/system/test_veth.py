"""A real kernel, a real netdev and its real carrier, in a network namespace of its own."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from simulators.fabric.mount import fuse_missing
from tests.system.harness import ROOT
from tests.system.veth_flaps import PORT

FLAPS = 200

_IN_A_NAMESPACE = "mount -t sysfs sysfs /sys && exec "


def missing() -> str | None:
    """Why a veth cannot be flapped here; None where it can."""
    if os.geteuid() != 0:
        return "making a network namespace needs root"
    for program in ("ip", "unshare"):
        if shutil.which(program) is None:
            return f"there is no program {program}"
    if in_namespace("ip link add v0 type veth peer name v1").returncode != 0:
        return "this kernel or container allows no veth in a namespace of its own"
    return fuse_missing()


def in_namespace(command: str) -> subprocess.CompletedProcess[str]:
    """Runs a command of the shell in new network and mount namespaces, to its end."""
    return subprocess.run(
        ["unshare", "-n", "-m", "sh", "-c", _IN_A_NAMESPACE + command],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )


pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(missing() is not None, reason=f"no real netdev: {missing()}"),
]


def overlap(found: list[int], true: list[int]) -> bool:
    """The moment lies somewhere in `true`: it can have been within `found`."""
    return found[0] <= true[1] and true[0] <= found[1]


def test_two_hundred_real_flaps_are_counted_exactly_and_each_edge_lies_in_its_interval(
    tmp_path: Path,
) -> None:
    run = in_namespace(f"{sys.executable} -m tests.system.veth_flaps {tmp_path} {FLAPS}")
    assert run.returncode == 0, run.stderr
    told: dict[str, Any] = json.loads(run.stdout)

    assert sum(flap["count"] for flap in told["listed"]) == FLAPS
    assert {flap["cause"] for flap in told["listed"]} == {"link"}
    device, number = PORT.split("/")
    series = f'flapd_link_downs_total{{cause="link",device="{device}",port="{number}"}}'
    assert f"{series} {float(FLAPS)}\n" in told["metrics"]
    remaining = iter(told["true"])
    for outage in told["edges"]:
        holds = [next(remaining) for _ in range(outage["count"])]
        assert overlap(outage["down"], holds[0]["down"])
        assert overlap(outage["up"], holds[-1]["up"])
