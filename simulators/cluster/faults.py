"""Faults: what an agent tells of errors, those that follow from no other that it knows of."""

from collections.abc import Iterable, Iterator
from itertools import takewhile
from typing import NamedTuple

from msgspec.structs import replace

from flapd.model.fault import LONGEST_TEXT_BYTES, Fault, FaultKind
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from simulators.cluster.clock import NodeClock
from simulators.cluster.names import id_of, node_name, port_key, port_name
from simulators.cluster.placed import JobRun
from simulators.cluster.told import Told
from simulators.job.ending import Message
from simulators.job.log import pid_of
from simulators.job.record import Attempt
from simulators.job.words.nccl import address, completion_text
from simulators.job.words.speaker import Clock, Speaker
from simulators.job.words.torch import WORDS

_KINDS: dict[str, FaultKind] = {
    "completion": "transport_error",
    "nccl_error": "nccl_error",
    "watchdog_timeout": "watchdog_timeout",
    "watchdog_stuck": "heartbeat",
    "worker_failed": "process_death",
}
_STEPS: dict[FaultKind, int] = {
    "transport_error": 0,
    "counter": 0,
    "nccl_error": 1,
    "watchdog_timeout": 2,
    "heartbeat": 3,
    "process_death": 3,
}
"""From the cause, each of which may take a second to be told."""
_POLL_SECONDS = 0.25
_COUNTED_WITHIN_SECONDS = 0.5


class _Error(NamedTuple):
    at: float
    fault: Fault
    group: str
    """Who tells of the same, so that the first of them is enough."""

    @property
    def order(self) -> tuple[float, str]:
        return self.at + _STEPS[self.fault.kind], self.fault.id


def faults_told(
    one: JobRun, node: int, clocks: dict[int, NodeClock], watched_from: float
) -> Iterator[Told]:
    """The clocks are those of all nodes of the job: a process writes down its own node's time."""
    for number, attempt in enumerate(one.run.attempts):
        errors = [*_said(one, number, node, clocks), *_counted(one, attempt, node, clocks[node])]
        for error in _nearest(error for error in errors if error.at >= watched_from):
            yield Told(error.at + _POLL_SECONDS, error.fault)


def _nearest(errors: Iterable[_Error]) -> Iterator[_Error]:
    """Of each who tells, the first: until something less near to the cause is told."""
    ordered = sorted(errors, key=lambda error: error.order)
    if not ordered:
        return
    step, dies = _STEPS[ordered[0].fault.kind], ordered[0].fault.kind == "process_death"
    near = takewhile(lambda error: _STEPS[error.fault.kind] == step, ordered)
    known: set[str] = set()
    for error in near:
        if error.group not in known:
            known.add(error.group)
            yield error
        if dies:
            return


def _said(one: JobRun, number: int, node: int, clocks: dict[int, NodeClock]) -> Iterator[_Error]:
    attempt, software = one.run.attempts[number], one.run.spec.software
    if one.log == "none" or attempt.end is None:
        return
    own = one.messages[number].get(node, [])
    is_quiet = software.nccl_debug not in ("WARN", "INFO")
    for message in attempt.end.messages if one.log == "shared" else own:
        is_said = message.name in _KINDS and not (is_quiet and message.name == "completion")
        if is_said:
            writer = one.node_of(message.rank)
            fault = _fault(one, number, message, node_name(writer), clocks[writer])
            group = fault.process_group or f"rank {message.rank}"
            yield _Error(message.at, replace(fault, node=node_name(node)), group)


def _fault(one: JobRun, attempt: int, message: Message, host: str, clock: NodeClock) -> Fault:
    kind, values = _KINDS[message.name], message.values
    pid = pid_of(message.rank, attempt)
    speaker = Speaker(one.run.spec, Clock(clock.unix_ns), message.rank, host, pid)
    time_ns, error_ns = _logged(one, message, clock)
    fault = Fault(
        id=id_of("fault", one.job, host, pid, message.name, message.at),
        kind=kind,
        form=message.name,
        text=_text(speaker, message),
        time_ns=time_ns,
        clock_error_ns=error_ns,
        logged_ns=time_ns,
        arrived_ns=clock.unix(message.at + _POLL_SECONDS),
        revision=1,
        job=one.job,
        primary=True,
        rank=message.rank,
        host=host,
        pid=pid,
    )
    if kind == "transport_error":
        return _completion(fault, speaker, message)
    if kind == "process_death":
        return replace(fault, event="exit code", status=values["code"])
    if kind == "heartbeat" or one.run.spec.software.torch_version < (2, 4):
        return fault if kind == "heartbeat" else replace(fault, **_of_work(message))
    return replace(fault, process_group="default_pg", group_rank=message.rank, **_of_work(message))


def _logged(one: JobRun, message: Message, clock: NodeClock) -> tuple[int, int]:
    """NCCL prints whole seconds since 2.26, PyTorch more since 2.4; else there is the arrival."""
    software, at_ns = one.run.spec.software, clock.unix(message.at)
    if message.name == "completion":
        if software.nccl_version >= (2, 26):
            return at_ns // SECOND_NS * SECOND_NS, SECOND_NS
        return clock.unix(message.at + _POLL_SECONDS), SECOND_NS
    if software.torch_version >= (2, 4):
        return at_ns, MILLISECOND_NS
    return clock.unix(message.at + _POLL_SECONDS), SECOND_NS


def _text(speaker: Speaker, message: Message) -> str:
    if message.name == "completion":
        text = completion_text(speaker, message.values["status"], message.values["peer"])
    elif message.name in WORDS:
        text = next(WORDS[message.name](speaker, message))
    else:
        text = f"failed (exitcode: {message.values['code']}) local_rank: {speaker.local_rank}"
    return text[:LONGEST_TEXT_BYTES]


def _completion(fault: Fault, speaker: Speaker, message: Message) -> Fault:
    """Releases before 2.22 do not name the card, by which the rank would be known."""
    spec, peer = speaker.spec, speaker.spec.node_of(message.values["peer"])
    names_card = spec.software.nccl_version >= (2, 22)
    return replace(
        fault,
        rank=fault.rank if names_card else None,
        status=message.values["status"],
        hca=f"mlx5_{speaker.local_rank}" if names_card else None,
        peer=f"{address(peer)}<53249>",
        direction="Send",
    )


def _of_work(message: Message) -> dict[str, object]:
    values = message.values
    return {
        "op": values["op"],
        "seq": values["seq"],
        "last_enqueued": values["enqueued"],
        "last_completed": values["completed"],
        "timeout_seconds": values.get("timeout"),
        "ran_seconds": values.get("ran"),
    }


def _counted(one: JobRun, attempt: Attempt, node: int, clock: NodeClock) -> Iterator[_Error]:
    """Queue pairs that gave up, by the counter of the port; whichever end lost its link."""
    until = one.gone_at(attempt, node)
    first: dict[int, list[float]] = {}
    for wait in one.waits.get(node, ()):
        owner, at = wait.fate.queue_pair.owner, wait.fate.at
        if not wait.fate.gave_up or at is None:
            continue
        if attempt.begin <= at < (until or float("inf")):
            first.setdefault(owner % one.run.spec.ranks_per_node, []).append(at)
    for port, times in first.items():
        yield _Error(min(times), _of_counter(one, node, port, times, clock), f"port {port}")


def _of_counter(one: JobRun, node: int, port: int, times: list[float], clock: NodeClock) -> Fault:
    first = min(times)
    name = port_name(port)
    return Fault(
        id=id_of("fault", "retries_exhausted", port_key(node, port), clock.ns(first)),
        kind="counter",
        form="retries_exhausted",
        text=f"req_transport_retries_exceeded of {name} rose by {len(times)} to {len(times)}",
        time_ns=clock.unix(first),
        clock_error_ns=round(_COUNTED_WITHIN_SECONDS * SECOND_NS),
        arrived_ns=clock.unix(first + _COUNTED_WITHIN_SECONDS),
        revision=1,
        node=node_name(node),
        job=one.job,
        primary=True,
        hca=name.partition("/")[0],
        port=1,
        event="retries exhausted",
        repeats=len(times),
    )
