"""Log: all that the processes of one node print into the job's output there, in order of time."""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from simulators.job.happenings import Outage
from simulators.job.record import Attempt, Run
from simulators.job.words import launcher, nccl, training
from simulators.job.words.speaker import Clock, Speaker
from simulators.job.words.torch import WORDS

_FIRST_PID, _AGENT_PID = 14_000, 13_000
_PORT_EVENT_SECONDS = 0.004
"""Until the next process has told of the same event."""
_RESTARTED_PIDS = 1_000
_STARTED_SECONDS = 5.0
"""From a process's start until its communicators are made."""


class Line(NamedTuple):
    """`text` may be several lines; it ends with a newline."""

    at: float
    rank: int
    text: str


def host_of(node: int) -> str:
    return f"node{node:03d}"


def pid_of(rank: int, attempt: int) -> int:
    """Those of different attempts differ."""
    return _FIRST_PID + attempt * _RESTARTED_PIDS + rank % _RESTARTED_PIDS


Who = Callable[[int, int], tuple[str, int]]
"""Host and pid of a rank in an attempt."""


def node_log(run: Run, node: int, clock: Clock) -> list[Line]:
    """Of all attempts, by processes that were never started."""

    def who(rank: int, attempt: int) -> tuple[str, int]:
        return host_of(node), pid_of(rank, attempt)

    lines = (attempt_log(run, node, clock, number, who) for number in range(len(run.attempts)))
    return sorted((line for some in lines for line in some), key=lambda line: line.at)


def attempt_log(run: Run, node: int, clock: Clock, number: int, who: Who) -> Iterator[Line]:
    """In no order."""
    attempt = run.attempts[number]
    speakers = [Speaker(run.spec, clock, rank, *who(rank, number)) for rank in ranks_on(run, node)]
    for speaker in speakers:
        for text in nccl.started(speaker):
            yield Line(attempt.begin + _STARTED_SECONDS, speaker.rank, f"{text}\n")
        for at, text in (
            *_port_events(run, speaker, attempt),
            *_words(speaker, attempt),
            *_training(run, speaker, attempt),
        ):
            yield Line(at, speaker.rank, f"{text}\n")


def ranks_on(run: Run, node: int) -> range:
    size = run.spec.ranks_per_node
    return range(node * size, (node + 1) * size)


def end_of(attempt: Attempt, rank: int) -> float:
    return float("inf") if attempt.end is None else attempt.end.ends[rank]


def _port_events(run: Run, speaker: Speaker, attempt: Attempt) -> Iterator[tuple[float, str]]:
    if not run.spec.software.nccl_debug or run.spec.software.nccl_debug == "VERSION":
        return
    late, end = _PORT_EVENT_SECONDS * speaker.local_rank, end_of(attempt, speaker.rank)
    for one in run.spec.happenings:
        if not isinstance(one, Outage) or one.node != run.spec.node_of(speaker.rank):
            continue
        device, up = f"mlx5_{one.port}", one.at_seconds + one.down_seconds
        changed = nccl.gid_changed(speaker, up, device) if one.gid_changes else None
        told = (
            (one.at_seconds, nccl.port_event(speaker, one.at_seconds, device, active=False)),
            (one.usable_at, nccl.port_event(speaker, one.usable_at, device, active=True)),
            (up, changed),
        )
        for at, text in told:
            if text is not None and attempt.begin < at < end:
                yield at + late, text


def _words(speaker: Speaker, attempt: Attempt) -> Iterator[tuple[float, str]]:
    warns = speaker.spec.software.nccl_debug in {"WARN", "INFO"}
    for message in attempt.end.messages if attempt.end else ():
        if message.rank != speaker.rank:
            continue
        if message.name == "completion":
            if warns:
                yield from _completion(speaker, message.at, **message.values)
        elif message.name == "worker_failed":
            for text in launcher.worker_failed(speaker, message, _AGENT_PID):
                yield message.at, text
        elif message.name == "worker_closed":
            for text in launcher.worker_closed(speaker, message, _AGENT_PID):
                yield message.at, text
        else:
            for text in WORDS[message.name](speaker, message):
                yield message.at, text


def _completion(speaker: Speaker, at: float, status: int, peer: int) -> Iterator[tuple[float, str]]:
    yield at, nccl.completion(speaker, at, status, peer)
    again = nccl.repeats(speaker, at + 0.02, peer)
    if again is not None:
        yield at + 0.02, again


def _training(run: Run, speaker: Speaker, attempt: Attempt) -> Iterator[tuple[float, str]]:
    end = end_of(attempt, speaker.rank)
    is_first, is_last = speaker.rank == 0, speaker.rank == run.spec.world_size - 1
    if is_last:
        for one in run.steps:
            if attempt.begin < one.end < end:
                yield one.end, training.step(speaker, one.end, one.number, one.end - one.begin)
    for pause in run.pauses:
        if not attempt.begin < pause.begin < end:
            continue
        if is_first and pause.what == "checkpoint":
            yield pause.begin, training.saving(pause.step)
        if is_last and pause.what == "evaluation":
            yield pause.end, training.validated(pause.step)
