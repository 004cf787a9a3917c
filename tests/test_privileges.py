"""Capabilities of real processes, as systemd gives them to a unit and Kubernetes to a container."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil
import pytest

from tests.capabilities import LAID_DOWN, sets_of
from tests.system.harness import ROOT, SimulatedNode, until
from tests.trees import lay_out

USER = 1000
READ_SEARCH, SYSLOG = 1 << 2, 1 << 34

LAYS_DOWN = """
import subprocess
from flapd.privileges import has_some_to_lay_down, lay_down_for_good

def tell():
    print(open("/proc/self/status").read(), "NEXT")
    status = ["cat", "/proc/self/status"]
    print(subprocess.run(status, check=True, capture_output=True, text=True).stdout, "NEXT")

print(has_some_to_lay_down(), "NEXT")
tell()
lay_down_for_good()
tell()
"""

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(
        os.geteuid() != 0 or shutil.which("setpriv") is None,
        reason="giving a process its capabilities needs root and setpriv (package util-linux)",
    ),
]


def as_in_a_unit(*capabilities: str) -> list[str]:
    """Words before a command: of a user, and ambient."""
    given = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    ids = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
    return [*as_in_a_container(*capabilities), *ids, f"--ambient-caps={given}"]


def as_in_a_container(*capabilities: str) -> list[str]:
    """Words before a command: of root, all that are not dropped."""
    given = ",".join(["-all", *(f"+{name}" for name in capabilities)])
    return ["setpriv", f"--inh-caps={given}", f"--bounding-set={given}"]


def ran_as(words: Sequence[str]) -> tuple[str, list[str]]:
    """Whether it has some; its status and its child's before it has laid them down, and after."""
    ran = subprocess.run(
        [*words, sys.executable, "-c", LAYS_DOWN],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert ran.returncode == 0, ran.stderr
    some, *told, _ = ran.stdout.split("NEXT\n")
    return some.strip(), told


@pytest.mark.parametrize("given", [as_in_a_unit, as_in_a_container])
def test_what_was_laid_down_cannot_be_had_again(given: Callable[..., list[str]]) -> None:
    some, (agent, child, agent_then, child_then) = ran_as(given("syslog", "dac_read_search"))

    assert some == "True"
    assert sets_of(agent)["CapEff"] == sets_of(child)["CapEff"] == SYSLOG | READ_SEARCH
    for status in (agent_then, child_then):
        assert {sets_of(status)[name] for name in LAID_DOWN} == {0}
        assert "NoNewPrivs:\t1\n" in status


def test_who_has_none_has_none_to_lay_down() -> None:
    some, (agent, *_) = ran_as(as_in_a_container())

    assert some == "False"
    assert sets_of(agent)["CapPrm"] == 0


def test_who_may_also_drop_what_can_be_given_drops_that() -> None:
    _, (_, _, agent, _) = ran_as(as_in_a_container("setpcap", "syslog"))

    assert sets_of(agent)["CapBnd"] == 0


def test_root_of_a_node_keeps_its_own() -> None:
    some, _ = ran_as(())

    assert some == "False"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    """The real agent, of root in a container that adds one capability."""
    node = SimulatedNode(tmp_path)
    lay_out(node.sysfs, {"class/infiniband_verbs/abi_version": "6"})
    node.start(*as_in_a_container("syslog"))
    try:
        until(node.is_ready, "a ready agent")
        yield node
    finally:
        node.kill()


def child_of(node: SimulatedNode, module: str) -> psutil.Process:
    """The process below the agent that runs this module."""
    assert node.agent is not None
    agent = psutil.Process(node.agent.pid)

    def running() -> psutil.Process | None:
        below = agent.children(recursive=True)
        return next((process for process in below if module in process.cmdline()), None)

    return until(running, module)


def sets_of_process(pid: int) -> dict[str, int]:
    return sets_of(Path(f"/proc/{pid}/status").read_text())


def test_who_answers_http_has_none_and_who_reads_has_them(node: SimulatedNode) -> None:
    assert node.agent is not None
    readers = [child_of(node, f"flapd.sources.{name}") for name in ("sampler", "job_reader")]

    assert {sets_of_process(node.agent.pid)[name] for name in LAID_DOWN} == {0}
    assert {sets_of_process(reader.pid)["CapEff"] for reader in readers} == {SYSLOG}


def test_who_reads_has_them_again_after_it_was_killed(node: SimulatedNode) -> None:
    first = node.sampler_pid()
    os.kill(first, signal.SIGKILL)
    until(lambda: node.sampler_pid() != first, "another sampler")

    assert sets_of_process(node.sampler_pid())["CapEff"] == SYSLOG


def test_without_who_starts_readers_the_agent_goes_on_with_what_it_has(
    node: SimulatedNode,
) -> None:
    launcher = child_of(node, "flapd.sources.launcher")
    launcher.kill()
    first = node.sampler_pid()
    os.kill(first, signal.SIGKILL)
    until(lambda: node.sampler_pid() != first, "another sampler")

    assert sets_of_process(node.sampler_pid())["CapEff"] == 0
    assert "launcher_gone" in node.log.read_text()


def test_with_the_agent_all_of_them_end(node: SimulatedNode) -> None:
    names = ("launcher", "sampler", "job_reader")
    children = [child_of(node, f"flapd.sources.{name}") for name in names]
    node.terminate()

    until(lambda: not any(child.is_running() for child in children), "the end of all")
