"""The agent's side of its job reader, with the real child."""

import queue
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from pathlib import Path

import psutil
import pytest
from structlog.testing import capture_logs

from flapd.model.duration import parse_duration
from flapd.model.observation import FaultRead, JobsPresent, Observation
from flapd.sources.follow.position import Position, decode
from flapd.sources.job_reader_link import POSITIONS_FILE, ReaderOrders
from flapd.sources.job_reader_process import Durable, JobReaderProcess
from flapd.sources.settings import JobsSettings, LogsSettings
from tests.sources.follow.lines import timeout

pytestmark = pytest.mark.system

PATIENCE_SECONDS = 20.0


class Agent:
    """Takes what its reader tells; what it took is durable when the test says so."""

    def __init__(self, root: Path, *, is_durable: bool = True) -> None:
        self.is_durable = is_durable
        self.root = root
        self._told: queue.Queue[Observation] = queue.Queue()
        orders = ReaderOrders(
            "node1",
            "/sys",
            "/proc",
            str(root),
            logs=LogsSettings(paths=(str(root / "*.log"),), discover=False),
            jobs=JobsSettings(every=parse_duration("1s")),
        )
        self.checkpoints = 0
        durable = Durable(_called, self._checkpoint_soon, self._until_ns)
        self.process = JobReaderProcess(orders, self._put, durable)
        self.process.start()

    def _put(self, observations: list[Observation]) -> None:
        for observation in observations:
            self._told.put(observation)

    def _checkpoint_soon(self) -> None:
        self.checkpoints += 1

    def _until_ns(self) -> int:
        return time.monotonic_ns() if self.is_durable else 0

    def next_number(self) -> int | None:
        while True:
            told = self._told.get(timeout=PATIENCE_SECONDS)
            if isinstance(told, FaultRead):
                return told.fault.seq

    def jobs_are_told(self) -> JobsPresent:
        while True:
            told = self._told.get(timeout=PATIENCE_SECONDS)
            if isinstance(told, JobsPresent):
                return told

    def positions(self) -> dict[str, Position]:
        path = self.root / POSITIONS_FILE
        return decode(path.read_bytes()) if path.exists() else {}


def _called(function: Callable[[], int]) -> "Future[int]":
    result: Future[int] = Future()
    result.set_result(function())
    return result


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Agent]]:
    agents: list[Agent] = []

    def begin(**options: bool) -> Agent:
        agents.append(Agent(tmp_path, **options))
        return agents[-1]

    yield begin
    for agent in agents:
        agent.process.stop()


def until(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def write(path: Path, *numbers: int) -> None:
    with path.open("a") as file:
        file.writelines(map(timeout, numbers))


def offset(agent: Agent, log: Path) -> int:
    found = [one for key, one in agent.positions().items() if key.endswith(str(log))]
    return found[0].mark.offset if found else -1


def test_reading_goes_on_where_it_was_when_the_last_agent_was_killed(
    start: Callable[..., Agent], tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    write(log, 1)
    first = start()
    until(lambda: offset(first, log) == len(timeout(1)))  # from its end
    write(log, 2)
    assert first.next_number() == 2
    until(lambda: offset(first, log) == len(timeout(1) + timeout(2)))
    first.process.stop()
    write(log, 3)

    assert start().next_number() == 3


def test_a_position_is_kept_only_once_what_was_read_up_to_it_is_durable(
    start: Callable[..., Agent], tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    write(log, 1)
    first = start()
    until(lambda: offset(first, log) > 0)
    first.is_durable = False
    write(log, 2)
    assert first.next_number() == 2
    until(lambda: first.process.health.reads.bytes > 0)
    first.process.stop()

    assert offset(first, log) == len(timeout(1))
    assert start().next_number() == 2  # again: it has the same id


def readers() -> list[psutil.Process]:
    """That this process has started and that run, the newest last."""
    children = psutil.Process().children()
    running = [child for child in children if child.status() != psutil.STATUS_ZOMBIE]
    found = [child for child in running if "flapd.sources.job_reader" in child.cmdline()]
    return sorted(found, key=lambda child: child.create_time())


def test_a_reader_that_ends_is_started_again_and_misses_nothing(
    start: Callable[..., Agent], tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    write(log, 1)
    agent = start()
    until(lambda: offset(agent, log) > 0)

    with capture_logs() as logs:
        readers()[-1].kill()
        write(log, 2)
        assert agent.next_number() == 2

    assert agent.process.health.restarts == 1
    assert "job_reader_ended" in [entry["event"] for entry in logs]


def test_stopping_ends_it_also_as_it_starts(start: Callable[..., Agent]) -> None:
    began = start()
    began.jobs_are_told()
    for agent in (began, start()):
        agent.process.stop()

    assert readers() == []


def test_what_cannot_be_read_is_logged_once(start: Callable[..., Agent], tmp_path: Path) -> None:
    (tmp_path / "loop.log").symlink_to("loop.log")
    with capture_logs() as logs:
        agent = start()
        until(lambda: bool(agent.process.health.reads.failures))
        seen = agent.process.health.reads
        until(lambda: agent.process.health.reads is not seen)

    events = [entry for entry in logs if entry["event"] == "not_readable"]
    assert [entry["what"] for entry in events] == [str(tmp_path / "loop.log")]


def test_a_log_that_is_new_has_its_position_kept_soon_and_a_known_one_when_it_may(
    start: Callable[..., Agent], tmp_path: Path
) -> None:
    log = tmp_path / "train.log"
    write(log, 1)
    agent = start()
    until(lambda: offset(agent, log) == len(timeout(1)))
    assert agent.checkpoints == 1
    write(log, 2)
    until(lambda: offset(agent, log) == len(timeout(1) + timeout(2)))

    assert agent.checkpoints == 1


def test_queue_pairs_are_asked_for_at_most_once_a_minute(start: Callable[..., Agent]) -> None:
    agent = start()
    agent.jobs_are_told()
    sent: list[object] = []
    child = agent.process._child
    real = child.send
    child.send = lambda message: sent.append(message) or real(message)  # type: ignore[method-assign,func-returns-value]
    for _ in range(5):
        agent.process.look_at_queue_pairs()

    assert len(sent) == 1
