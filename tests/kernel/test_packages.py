"""The package for Debian 12 there: installed, upgraded over an agent that runs, taken away."""

from typing import Any

import pytest

from flapd import __version__
from tests.kernel.guest.package import LEFT_BEHIND, NEWER_VERSION, Said
from tests.kernel.image import missing
from tests.kernel.reset import Reset

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(missing() is not None, reason=f"no virtual machine: {missing()}"),
]

OF_THE_TESTS = "/etc/systemd/system/flapd.service.d"
"""A drop-in that no package knows of."""


def said(step: Any) -> Said:
    return Said(*step)


def running_version(metrics: str) -> str:
    (line,) = (line for line in metrics.splitlines() if line.startswith("flapd_build_info{"))
    return line.partition('version="')[2].partition('"')[0]


def test_it_installs_what_the_unit_needs_and_starts_nothing(reset: Reset) -> None:
    installed = reset.before["started"]["installed"]

    assert said(installed["said"]).status == 0, installed["said"]
    assert "systemctl enable --now flapd" in said(installed["said"]).text
    assert installed["state"] == "inactive loaded"
    assert installed["user"]


def test_an_upgrade_runs_the_new_agent_in_place_of_the_old(reset: Reset) -> None:
    upgraded = reset.before["upgraded"]
    before, after = upgraded["before"], upgraded["unit"]

    assert said(upgraded["said"]).status == 0, upgraded["said"]
    assert running_version(reset.before["started"]["metrics"]) == __version__
    assert running_version(upgraded["metrics"]) == NEWER_VERSION
    assert before["MainPID"] != after["MainPID"]
    assert (after["ActiveState"], after["Result"]) == ("active", "success")
    assert len(upgraded["true"]) > 1, "links flapped from before it began until it had ended"


def test_a_downgrade_says_that_it_is_one_and_goes_on_with_the_history(reset: Reset) -> None:
    downgraded = reset.after["downgraded"]

    assert said(downgraded["said"]).status == 0, downgraded["said"]
    assert f"is older than {NEWER_VERSION}-1, which ran here" in said(downgraded["said"]).text
    assert running_version(downgraded["metrics"]) == __version__
    assert totals(downgraded["metrics"]) == totals(reset.after["metrics"])


def totals(metrics: str) -> list[str]:
    return [line for line in metrics.splitlines() if line.startswith("flapd_link_downs_total{")]


def test_removed_it_is_stopped_and_leaves_what_people_may_want(reset: Reset) -> None:
    away = reset.after["taken_away"]
    left = away["after_removal"]

    assert said(away["removed"]).status == 0, away["removed"]
    assert left["state"] == "inactive not-found"
    assert set(LEFT_BEHIND) <= set(left["there"])
    assert [path for path in left["there"] if path.startswith("/usr/")] == []


def test_purged_it_leaves_nothing(reset: Reset) -> None:
    away = reset.after["taken_away"]

    assert said(away["purged"]).status == 0, away["purged"]
    left = [path for path in away["after_purge"]["there"] if not path.startswith(OF_THE_TESTS)]
    assert left == []
