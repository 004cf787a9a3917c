"""The agent's side of the sampler, with the real child on a small tree of plain files."""

import json
import os
import queue
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from flapd.model.duration import parse_duration
from flapd.model.observation import Observation, Sample
from flapd.sources.processes import start_time
from flapd.sources.sampler_link import Orders, SourcesHeard, Told
from flapd.sources.sampler_process import SamplerProcess
from flapd.sources.settings import OFF, PortsSettings, SamplingSettings
from flapd.store.ring import read_ring, ring_files, ring_path
from tests.trees import lay_out

pytestmark = pytest.mark.system

PATIENCE_SECONDS = 20.0
KEY = "0002:c903:0000:0001/1"


class Agent:
    """Takes what its sampler tells."""

    def __init__(self, root: Path, known_up: Callable[[], frozenset[str]]) -> None:
        """`known_up` is asked when a sampler has started and was told nothing yet."""
        self._told: queue.Queue[Observation] = queue.Queue()
        ring = root / "ring"
        ring.mkdir(exist_ok=True)
        sampling = SamplingSettings(interval=parse_duration("20ms"))
        orders = Orders(str(root / "sys"), str(ring), "boot1", sampling, PortsSettings())
        self._ring = ring
        self.at_end: queue.Queue[int] = queue.Queue()
        """When the last fast reading began that the ring held, each time a sampler had ended."""
        self.process = SamplerProcess(orders, self._put, known_up, self._ended)
        self.process.start()

    def _put(self, observations: list[Observation]) -> None:
        for observation in observations:
            self._told.put(observation)

    def _ended(self) -> None:
        rings = map(read_ring, ring_files(self._ring))
        rows = [row for ring in rings if ring.tier == "fast" for row in ring.rows()]
        self.at_end.put(max((row.before_ns for row in rows), default=0))

    def next_sample(self, is_wanted: Callable[[Sample], bool]) -> Sample:
        while True:
            told = self._told.get(timeout=PATIENCE_SECONDS)
            if isinstance(told, Sample) and is_wanted(told):
                return told


@pytest.fixture
def root(tmp_path: Path) -> Path:
    lay_out(
        tmp_path / "sys/class/infiniband/mlx5_0",
        {
            "node_guid": "0002:c903:0000:0001\n",
            "ports/1/link_layer": "InfiniBand\n",
            "ports/1/state": "1: DOWN\n",
            "ports/1/phys_state": "2: Polling\n",
            "ports/1/rate": "400 Gb/sec (4X NDR)\n",
            "ports/1/counters/link_downed": "3\n",
        },
    )
    return tmp_path


@pytest.fixture
def start(root: Path) -> Iterator[Callable[..., Agent]]:
    agents: list[Agent] = []

    def begin(*known_up: str) -> Agent:
        agents.append(Agent(root, lambda: frozenset(known_up)))
        return agents[-1]

    yield begin
    for agent in agents:
        agent.process.stop()


def test_a_port_that_was_up_before_is_read_in_full_although_it_is_down(
    start: Callable[..., Agent],
) -> None:
    sample = start(KEY).next_sample(lambda sample: "rate_mbps" in sample.values)

    assert sample.key == KEY


def test_a_port_that_never_was_up_is_read_in_full_once_it_comes_up(
    start: Callable[..., Agent], root: Path
) -> None:
    agent = start()
    first = agent.next_sample(lambda sample: sample.first)
    assert first.values == {"counters/link_downed": 3, "state": 1, "phys_state": 2}
    (root / "sys/class/infiniband/mlx5_0/ports/1/state").write_text("4: ACTIVE\n")

    sample = agent.next_sample(lambda sample: "rate_mbps" in sample.values)

    assert sample.values["state"] == 4


def test_what_a_sampler_that_ended_did_not_tell_can_be_taken_before_the_next_begins(
    start: Callable[..., Agent], root: Path
) -> None:
    agent = start(KEY)
    agent.next_sample(lambda sample: "rate_mbps" in sample.values)
    (ring,) = [path for path in ring_files(root / "ring") if read_ring(path).tier == "fast"]

    os.kill(json.loads((root / "ring/sampler.json").read_bytes())["pid"], signal.SIGKILL)

    taken = agent.at_end.get(timeout=PATIENCE_SECONDS)
    again = agent.next_sample(lambda sample: sample.first)
    rows = [row.before_ns for row in read_ring(ring).rows() if row.before_ns < again.before_ns]
    assert max(rows) == taken


def test_how_reading_goes_is_added_up(start: Callable[..., Agent]) -> None:
    health = start(KEY).process.health
    deadline = time.monotonic() + PATIENCE_SECONDS

    def fast_sweeps() -> int:
        histogram = health.reads.read_seconds.get(("mlx5_0", "fast"))
        return sum(histogram.counts) if histogram is not None else 0

    while fast_sweeps() < 60:  # more than it tells of at once
        assert time.monotonic() < deadline, "nothing is told of reading"
        time.sleep(0.05)
    assert health.reads.slowed.keys() == {"mlx5_0"}
    assert 0 < sum(health.reads.lateness.counts) <= fast_sweeps()
    assert health.restarts == 0


def test_a_port_can_be_asked_for_and_what_tells_of_it_is_known(
    start: Callable[..., Agent], root: Path
) -> None:
    agent = start(KEY)
    agent.next_sample(lambda sample: "rate_mbps" in sample.values)
    (root / "sys/class/infiniband/mlx5_0/ports/1/state").write_text("2: INIT\n")

    agent.process.read_now([KEY])

    assert agent.next_sample(lambda sample: sample.values.get("state") == 2)
    deadline = time.monotonic() + PATIENCE_SECONDS
    while "mlx5_0" not in agent.process.health.sources:
        assert time.monotonic() < deadline, "it was never told"
        time.sleep(0.05)
    assert agent.process.health.sources["mlx5_0"] == dict.fromkeys(
        ("rdma_netlink", "verbs", "ethtool", "kernel_log"), OFF
    )


def test_a_source_that_told_and_does_so_no_more_is_logged(root: Path) -> None:
    agent = Agent(root, frozenset)

    def told(**sources: str) -> list[Told]:
        return [SourcesHeard({"mlx5_0": sources})]

    with capture_logs() as logs:
        agent.process._hear(told(verbs="on", ethtool="EPERM"))
        agent.process._hear(told(verbs="it was removed", ethtool="EIO"))
        agent.process._hear(told(verbs="on", ethtool="on"))
    agent.process.stop()

    assert [log for log in logs if log["event"] == "source_silent"] == [
        {
            "event": "source_silent",
            "device": "mlx5_0",
            "source": "verbs",
            "reason": "it was removed",
            "log_level": "warning",
        }
    ]


def pid_of_sampler(root: Path) -> int:
    return int(json.loads((root / "ring/sampler.json").read_bytes())["pid"])


def test_an_agent_that_is_stopped_as_its_sampler_starts_says_nothing_of_it(root: Path) -> None:
    is_starting, go_on = threading.Event(), threading.Event()

    def known_up() -> frozenset[str]:
        is_starting.set()
        go_on.wait(PATIENCE_SECONDS)
        return frozenset()

    with capture_logs() as logs:
        process = Agent(root, known_up).process
        assert is_starting.wait(PATIENCE_SECONDS)
        process.stop()
        go_on.set()
        process.stop()  # waits for it to have ended

    assert logs == []
    assert start_time(pid_of_sampler(root)) is None


def test_a_sampler_that_ends_before_it_is_told_anything_is_started_again(root: Path) -> None:
    killed: list[int] = []

    def known_up() -> frozenset[str]:
        if not killed:
            killed.append(pid_of_sampler(root))
            os.kill(killed[0], signal.SIGKILL)
            deadline = time.monotonic() + PATIENCE_SECONDS
            while start_time(killed[0]) is not None and time.monotonic() < deadline:
                time.sleep(0.01)
        return frozenset()

    with capture_logs() as logs:
        agent = Agent(root, known_up)
        agent.next_sample(lambda sample: sample.first)
        agent.process.stop()

    assert [log["event"] for log in logs] == ["sampler_ended"]
    assert agent.process.health.restarts == 1


def test_rings_that_cannot_be_made_are_told_and_the_port_is_read(root: Path) -> None:
    for tier in ("fast", "slow"):
        unfinished = ring_path(root / "ring", KEY, tier)
        unfinished.with_name(f"{unfinished.name}.new").mkdir(parents=True)

    with capture_logs() as logs:
        agent = Agent(root, lambda: frozenset({KEY}))
        agent.next_sample(lambda sample: "rate_mbps" in sample.values)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while agent.process.health.reads.rings_missing != {"mlx5_0": 2}:
            assert time.monotonic() < deadline, "it was never told"
            time.sleep(0.05)
        agent.process.stop()

    assert {
        "event": "rings_missing",
        "device": "mlx5_0",
        "rings": 2,
        "log_level": "warning",
    } in logs
