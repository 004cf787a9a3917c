"""Other causes: what shows that something else than the fabric did it; nothing less counts."""

from collections.abc import Iterable

from flapd.core.incident.out_of_step import OutOfStep
from flapd.core.incident.scene import Scene
from flapd.core.incident.starts import is_of_start
from flapd.model.fault import Fault
from flapd.model.stall import Stall
from flapd.model.standing import Standing
from flapd.model.times import SECOND_NS

LINK_STATUSES = frozenset({None, 12, 13, 19, 20, 21})
"""Work completions that a path which is gone can bring (libibverbs, enum ibv_wc_status)."""


def other_cause(symptom: Fault | Stall, scene: Scene) -> str | None:
    """In words; None where there is no sign of one."""
    if isinstance(symptom, Stall):
        return _of_stall(symptom)
    return _of_fault(symptom) or _of_ranks(symptom, scene)


def weak_cause(symptom: Fault | Stall, scene: Scene) -> str | None:
    """What explains it unless a flap does: nothing but a flap speaks against it."""
    if isinstance(symptom, Stall):
        return None
    if symptom.kind == "process_death":
        return f"{_who(symptom)} ended ({symptom.event or 'for itself'}) before any error was seen"
    if symptom.kind == "heartbeat":
        return (
            f"the watchdog of {_who(symptom)} itself was stuck: a call of CUDA or NCCL, "
            "or a lock of the interpreter, before any error of the transport"
        )
    if is_of_start(symptom, scene):
        return "it came while the job was connecting: a route, a GID or a peer that is not there"
    return None


def _of_stall(stall: Stall) -> str | None:
    if stall.stall_class == "this_node":
        return "the GPUs of this node were idle meanwhile: it was late itself, and others waited"
    return None


def _of_fault(fault: Fault) -> str | None:
    if fault.kind == "fatal_event":
        return f"{fault.hca or 'a device'} itself failed ({fault.event or 'fatal event'})"
    if fault.kind == "transport_error" and fault.status not in LINK_STATUSES:
        return (
            f"a completion with status {fault.status} is one of memory, PCIe or the remote "
            "process, not of a link"
        )
    return None


def _of_ranks(fault: Fault, scene: Scene) -> str | None:
    if fault.kind not in ("watchdog_timeout", "heartbeat"):
        return None
    return _of_mismatch(fault, scene.out_of_step) or _of_standings(fault, scene.standings)


def _of_mismatch(fault: Fault, out_of_step: OutOfStep) -> str | None:
    """Ranks of a group that are at one sequence number with different operations, or never came."""
    absent = out_of_step.absent(fault)
    if absent is not None:
        return f"{_who(absent)} never joined collective {absent.seq}, by its own account"
    unlike = out_of_step.unlike(fault)
    if unlike is not None:
        return f"ranks were out of step: at {fault.seq} some ran {fault.op}, others {unlike.op}"
    return None


def _of_standings(fault: Fault, standings: Iterable[Standing]) -> str | None:
    known = tuple(standings)
    for standing in known:
        stuck = [rank for rank in standing.missing if not _waits(rank, known)]
        if stuck and _is_of(standing, fault):
            ranks = ", ".join(map(str, stuck[:8]))
            return (
                f"rank {ranks} never came to collective {standing.seq} and waits in no other, "
                "by its dump: it was held up by something else"
            )
    return None


def _is_of(standing: Standing, fault: Fault) -> bool:
    """The dump is of this hang: the collective was created within it."""
    started = fault.started_ns
    if started is None or fault.time_ns is None:
        return fault.seq == standing.seq
    return started - 60 * SECOND_NS <= standing.created_ns <= fault.time_ns


def _waits(rank: int, standings: Iterable[Standing]) -> bool:
    """In a collective of any group, which the fabric may hold up."""
    return any(one.states.get(rank, "completed") != "completed" for one in standings)


def _who(fault: Fault) -> str:
    if fault.rank is not None:
        return f"rank {fault.rank}"
    return f"process {fault.pid}" if fault.pid is not None else "a process"
