"""The unit under a real systemd: what it says, what ends it, and a reset of the machine."""

import json
import re

import pytest

from flapd.model.event import Outage
from flapd.store.flap_query import FlapQuery
from tests.capabilities import LAID_DOWN, sets_of
from tests.kernel.guest.under_systemd import ALL_IS_WELL, PORT
from tests.kernel.image import missing
from tests.kernel.reset import Reset
from tests.kernel.told import assert_each_is_found, link_downs, read_outages
from tests.systemd.test_unit import WORST_EXPOSURE

CAP_SYSLOG = 1 << 34

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(missing() is not None, reason=f"no virtual machine: {missing()}"),
]

FLAPPED = ("flapped", "killed", "stopped", "upgraded")
"""What happened while links did."""


def outages_of_port(reset: Reset) -> list[Outage]:
    return read_outages(reset.history, FlapQuery(port=PORT))


def test_it_is_started_once_it_says_that_it_is_ready(reset: Reset) -> None:
    unit = reset.before["started"]["unit"]

    assert (unit["ActiveState"], unit["SubState"]) == ("active", "running")
    assert reset.before["reloaded"]["before"]["StatusText"] == ALL_IS_WELL


def test_its_exposure_as_it_runs_is_low(reset: Reset) -> None:
    level = re.search(
        r"exposure level for flapd.service: ([\d.]+)", reset.before["started"]["security"]
    )

    assert level is not None
    assert float(level[1]) <= WORST_EXPOSURE


def test_its_journal_is_json_line_by_line(reset: Reset) -> None:
    journal = reset.before["reloaded"]["journal"]
    said = [entry["MESSAGE"] for entry in journal if entry["SYSLOG_IDENTIFIER"] == "flapd"]

    assert "started" in {json.loads(line)["event"] for line in said}


def test_a_reload_is_obeyed_by_the_same_process(reset: Reset) -> None:
    reloaded = reset.before["reloaded"]
    said = [entry["MESSAGE"] for entry in reloaded["journal"]]

    assert reloaded["before"]["MainPID"] == reloaded["after"]["MainPID"]
    assert any('"section_reloaded"' in line and '"sampling"' in line for line in said)


def test_killed_it_is_started_again(reset: Reset) -> None:
    unit = reset.before["killed"]["unit"]

    assert (unit["ActiveState"], unit["NRestarts"]) == ("active", "1")


def test_what_the_unit_is_given_its_readers_have_and_the_agent_has_not(reset: Reset) -> None:
    """By the drop-in for the kernel's log, which the agent is not to read."""
    killed = reset.before["killed"]
    told = {name: sets_of(status) for name, status in killed["status"].items()}

    assert {told["agent"][name] for name in LAID_DOWN} == {0}
    assert told.keys() == {"agent", "launcher", "sampler", "job_reader"}
    assert {told[name]["CapEff"] for name in told.keys() - {"agent"}} == {CAP_SYSLOG}
    assert killed["port"]["sources"]["kernel_log"] == "on"
    assert reset.before["started"]["port"]["sources"]["kernel_log"] != "on"


def test_stopped_it_is_ended_by_the_watchdog_and_started_again(reset: Reset) -> None:
    stopped = reset.before["stopped"]
    said = [entry["MESSAGE"] for entry in stopped["journal"]]

    assert any("Watchdog timeout" in line for line in said)
    assert (stopped["unit"]["ActiveState"], stopped["unit"]["NRestarts"]) == ("active", "2")


@pytest.mark.parametrize("step", FLAPPED)
def test_no_flap_is_missed_whatever_happens_to_it(reset: Reset, step: str) -> None:
    true = reset.before[step]["true"]
    begin_ns, end_ns = true[0]["down"][0], true[-1]["up"][1]
    boot = reset.before["outage"]["boot"]

    found = [
        outage
        for outage in outages_of_port(reset)
        if outage.boot == boot
        and outage.up is not None
        and outage.down.earliest_ns < end_ns
        and begin_ns < outage.up.latest_ns
    ]
    assert_each_is_found(found, true)


def test_an_outage_outlives_a_reset_and_the_rest_of_it_is_the_boots(reset: Reset) -> None:
    before = reset.before["outage"]["flap"]
    interrupted, rest = outages_of_port(reset)[-2:]

    assert (interrupted.id, interrupted.cause, interrupted.status) == (before["id"], "link", "lost")
    assert interrupted.boot == reset.before["outage"]["boot"] != rest.boot
    assert (rest.cause, rest.status, rest.grace) == ("boot", "closed", True)


def test_everything_is_counted_once_and_the_boot_not_at_all(reset: Reset) -> None:
    interrupted = 1
    true = sum(len(reset.before[step]["true"]) for step in FLAPPED)

    assert link_downs(reset.after["metrics"], "rxe0") == true + interrupted
    by_link = [outage for outage in outages_of_port(reset) if outage.cause == "link"]
    assert sum(outage.count for outage in by_link) == true + interrupted


def test_the_agent_comes_back_with_the_machine(reset: Reset) -> None:
    unit = reset.after["unit"]

    assert (unit["ActiveState"], unit["StatusText"]) == ("active", ALL_IS_WELL)
