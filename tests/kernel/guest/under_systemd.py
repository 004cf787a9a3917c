"""In a virtual machine under systemd: the unit, what ends it, and a reset of the machine.

systemd starts this at each boot: what the first boot left in /out tells the second.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.kernel.guest.agent import Api, copy_history, until
from tests.kernel.guest.links import Moment, flap, run, switch
from tests.kernel.guest.package import (
    NEWER,
    OLDER,
    first_installed,
    install,
    installed_amid_flaps,
    taken_away,
)

OUT = Path("/out")
BEFORE_RESET = OUT / "before_reset.json"
ALL_IS_WELL = "3 of 3 ports watched"
PORT, NETDEV, PEER = "rxe0/1", "v0", "v1"
_CONFIG = Path("/etc/flapd/flapd.toml")
_DROP_IN = Path("/etc/systemd/system/flapd.service.d/test.conf")
_MAY_READ_THE_LOG = Path("/payload/drop-ins/kernel-log.conf")
_SHOWN = "ActiveState,SubState,MainPID,NRestarts,Result,StatusText"
_api = Api(Path("/run/flapd/flapd.sock"))


def said_by(*command: str) -> str:
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=90).stdout


def unit() -> dict[str, str]:
    shown = said_by("systemctl", "show", "flapd", f"--property={_SHOWN}")
    return dict(line.split("=", 1) for line in shown.splitlines())


def journal() -> list[dict[str, Any]]:
    lines = said_by("journalctl", "--unit=flapd", "--output=json", "--no-pager").splitlines()
    return [json.loads(line) for line in lines]


def has_seen_all() -> bool:
    return _api.has_seen_all(PORT, NETDEV)


def started() -> dict[str, Any]:
    """By its package, with a watchdog that is sooner out of patience, each down told and none
    held against its port."""
    installed = first_installed()
    with _CONFIG.open("a") as config:
        config.write("\n[flap]\nmerge_within = 0\npenalty = 1\n")
    _DROP_IN.parent.mkdir(parents=True)
    _DROP_IN.write_text("[Service]\nWatchdogSec=15\n")
    run("systemctl daemon-reload")
    run("systemctl enable --now flapd")
    security = said_by("systemd-analyze", "security", "flapd.service")
    told = {"installed": installed, "unit": unit(), "security": security}
    until(_api.is_ready, "a ready agent")
    until(_says_all_is_well, "the agent's word to systemd")
    return {**told, "port": _api.port(PORT), "metrics": _api.get_text("/metrics")}


def _says_all_is_well() -> bool:
    return unit()["StatusText"] == ALL_IS_WELL


def reloaded() -> dict[str, Any]:
    before = unit()
    installed = _CONFIG.read_text()
    _CONFIG.write_text(installed.replace("[sampling]", '[sampling]\nblack_box = "20s"'))
    run("systemctl reload flapd")
    until(lambda: "section_" in str(journal()), "word of what was reloaded")
    return {"before": before, "after": unit(), "journal": journal()}


def flap_twice() -> list[dict[str, Moment]]:
    first = flap(switch(PEER), 0.3)
    time.sleep(0.3)
    return [first, flap(switch(PEER), 0.3)]


def flapped() -> dict[str, Any]:
    true = flap_twice()
    until(has_seen_all, "the end of the last flap")
    return {"true": true}


def killed() -> dict[str, Any]:
    """And flapped while nobody watches; what comes after it may read the kernel's log."""
    shutil.copy(_MAY_READ_THE_LOG, _DROP_IN.parent)
    run("systemctl daemon-reload")
    run("systemctl kill --kill-whom=main --signal=KILL flapd")
    true = flap_twice()
    return {"true": true, "unit": _restarted(1), **_given()}


def _given() -> dict[str, Any]:
    """What it can read of a port; what the kernel shows of the agent and of its children."""
    processes = Path("/sys/fs/cgroup/system.slice/flapd.service/cgroup.procs").read_text().split()
    status = {}
    for pid in processes:
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        module = next((word for word in words if word.startswith("flapd.sources.")), "agent")
        status[module.rpartition(".")[2]] = Path(f"/proc/{pid}/status").read_text()
    return {"status": status, "port": _api.port(PORT)}


def stopped() -> dict[str, Any]:
    """The agent goes on no more; its sampler does."""
    os.kill(int(unit()["MainPID"]), signal.SIGSTOP)
    true = flap_twice()
    return {"true": true, "unit": _restarted(2), "journal": journal()}


def upgraded() -> dict[str, Any]:
    """To a newer package, which starts the agent anew."""
    before = unit()
    said, true = installed_amid_flaps(NEWER, PEER)
    return {"said": said, "true": true, "before": before, **_after_installation()}


def downgraded() -> dict[str, Any]:
    return {"said": install(OLDER), **_after_installation()}


def _after_installation() -> dict[str, Any]:
    """The agent that is there now."""
    until(_api.is_ready, "a ready agent")
    until(has_seen_all, "what happened meanwhile")
    return {"unit": unit(), "metrics": _api.get_text("/metrics")}


def _restarted(times: int) -> dict[str, str]:
    """The unit once it was started again so often, is well, and knows what happened."""
    until(lambda: int(unit()["NRestarts"]) >= times, f"restart {times} of the unit")
    until(_api.is_ready, "a ready agent")
    until(has_seen_all, "what it missed")
    return unit()


def reset_in_an_outage(told: dict[str, Any]) -> None:
    """As a panic does it: nothing is ended, nothing is written that was not."""
    down = switch(PEER)(False)
    told["outage"] = {
        "down": down,
        "flap": until(_open_and_durable, "an outage in the history"),
        "boot": Path("/proc/sys/kernel/random/boot_id").read_text().strip(),
    }
    BEFORE_RESET.write_text(json.dumps(told))
    Path("/proc/sysrq-trigger").write_text("b")
    time.sleep(60)


def _open_and_durable() -> dict[str, Any] | None:
    return next((item for item in _api.flaps(status="open") if item["durable"]), None)


def before_reset() -> None:
    steps = (started, reloaded, flapped, killed, stopped, upgraded)
    told: dict[str, Any] = {}
    for step in steps:
        began = time.monotonic()
        told[step.__name__] = step()
        sys.stdout.write(f"{step.__name__} took {time.monotonic() - began:.1f} s\n")
    reset_in_an_outage(told)


def after_reset() -> None:
    """The unit is enabled: nobody starts it. In the end nothing of flapd is left."""
    until(_api.is_ready, "an agent that came with the machine")
    until(has_seen_all, "the end of the outage")
    until(_says_all_is_well, "the agent's word to systemd")
    told = {"unit": unit(), "flaps": _api.flaps(), "metrics": _api.get_text("/metrics")}
    told["downgraded"] = downgraded()
    copy_history(Path("/var/lib/flapd/history.sqlite"), OUT / "history.sqlite")
    told["taken_away"] = taken_away()
    (OUT / "after_reset.json").write_text(json.dumps(told))


if __name__ == "__main__":
    try:
        after_reset() if BEFORE_RESET.exists() else before_reset()
    finally:
        sys.stdout.write(said_by("journalctl", "--unit=flapd", "--no-pager"))
