"""In a virtual machine under systemd: the unit, what ends it, and a reset of the machine.

systemd starts this at each boot: what the first boot left in /out tells the second.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.kernel.guest.agent import Api, copy_history, until
from tests.kernel.guest.links import Moment, flap, run, switch

OUT = Path("/out")
BEFORE_RESET = OUT / "before_reset.json"
ALL_IS_WELL = "3 of 3 ports watched"
PORT, NETDEV, PEER = "rxe0/1", "v0", "v1"
_CONFIG = Path("/etc/flapd/flapd.toml")
_DROP_IN = Path("/etc/systemd/system/flapd.service.d/test.conf")
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
    """As one installs it, with a watchdog that is sooner out of patience, and each down told."""
    with _CONFIG.open("a") as config:
        config.write("\n[flap]\nmerge_within = 0\n")
    _DROP_IN.parent.mkdir(parents=True)
    _DROP_IN.write_text("[Service]\nWatchdogSec=15\n")
    run("systemctl daemon-reload")
    run("systemctl enable --now flapd")
    told = {"unit": unit(), "security": said_by("systemd-analyze", "security", "flapd.service")}
    until(_api.is_ready, "a ready agent")
    until(_says_all_is_well, "the agent's word to systemd")
    return told


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
    """And flapped while nobody watches."""
    run("systemctl kill --kill-whom=main --signal=KILL flapd")
    true = flap_twice()
    return {"true": true, "unit": _restarted(1)}


def stopped() -> dict[str, Any]:
    """The agent goes on no more; its sampler does."""
    os.kill(int(unit()["MainPID"]), signal.SIGSTOP)
    true = flap_twice()
    return {"true": true, "unit": _restarted(2), "journal": journal()}


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
    steps = (started, reloaded, flapped, killed, stopped)
    told: dict[str, Any] = {}
    for step in steps:
        began = time.monotonic()
        told[step.__name__] = step()
        sys.stdout.write(f"{step.__name__} took {time.monotonic() - began:.1f} s\n")
    reset_in_an_outage(told)


def after_reset() -> None:
    """The unit is enabled: nobody starts it."""
    until(_api.is_ready, "an agent that came with the machine")
    until(has_seen_all, "the end of the outage")
    until(_says_all_is_well, "the agent's word to systemd")
    told = {"unit": unit(), "flaps": _api.flaps(), "metrics": _api.text("/metrics")}
    run("systemctl stop flapd")
    copy_history(Path("/var/lib/flapd/history.sqlite"), OUT / "history.sqlite")
    (OUT / "after_reset.json").write_text(json.dumps(told))


if __name__ == "__main__":
    try:
        after_reset() if BEFORE_RESET.exists() else before_reset()
    finally:
        sys.stdout.write(said_by("journalctl", "--unit=flapd", "--no-pager"))
