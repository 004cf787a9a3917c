"""Faults: what a message becomes that tells of one."""

from hashlib import blake2b
from typing import Any

from flapd.core.job.forms.nccl import EVENTS
from flapd.core.job.message import Message
from flapd.core.job.releases import release_at
from flapd.core.job.said import Said
from flapd.model.fault import FAULT_KINDS, LONGEST_TEXT_BYTES, Fault, FaultKind

FLUSHED = 5
"""IBV_WC_WR_FLUSH_ERR: the queue pair was in error before."""

_NAMES = {number: name for name, number in EVENTS.items()}
_KINDS: dict[str, FaultKind] = {kind: kind for kind in FAULT_KINDS}


def fault_of(said: Said) -> Fault | None:
    """None where the message tells of no fault, or of an event without saying when."""
    kind = _KINDS.get(said.message.form.kind)
    if kind is None or _is_quoted_event(said.message):
        return None
    event, status = said.text("event"), said.integer("status")
    if kind == "port_event":
        status = EVENTS.get(event or "") if status is None else status
        event = event or (None if status is None else _NAMES.get(status))
    return Fault(
        id=_id(kind, said),
        kind=kind,
        form=said.message.form.name,
        text=_short(said.message.text),
        time_ns=said.when.time_ns,
        clock_error_ns=said.when.error_ns,
        logged_ns=said.when.logged_ns,
        arrived_ns=said.when.arrived_ns,
        consequence=said.message.form.consequence
        or (kind == "transport_error" and status == FLUSHED),
        family=_family(said.message),
        event=event,
        status=status,
        source=said.place,
        **_who(said),
        **_what(said),
    )


def _who(said: Said) -> dict[str, Any]:
    group_rank, pid = said.integer("group_rank"), said.integer("pid")
    return {
        "rank": said.rank,
        "group_rank": said.message.group_rank if group_rank is None else group_rank,
        "process_group": said.message.process_group,
        "host": said.text("host") or said.speaker.host,
        "pid": said.speaker.pid if pid is None else pid,
    }


def _what(said: Said) -> dict[str, Any]:
    timeout = said.seconds("timeout_ms", 1000)
    return {
        "op": said.text("op"),
        "seq": said.integer("seq"),
        "last_enqueued": said.integer("last_enqueued"),
        "last_completed": said.integer("last_completed"),
        "timeout_seconds": said.seconds("timeout_seconds") if timeout is None else timeout,
        "ran_seconds": said.seconds("ran_ms", 1000),
        "hca": said.text("hca"),
        "port": said.integer("port"),
        "peer": said.text("peer"),
        "local_gid": said.text("local_gid"),
        "remote_gid": said.text("remote_gid"),
        "direction": said.text("direction"),
        "vendor": said.integer("vendor"),
    }


def _is_quoted_event(message: Message) -> bool:
    """PyTorch repeats the last warning of its process, which may be days old."""
    return message.form.kind == "port_event" and message.header is None


def _id(kind: str, said: Said) -> str:
    """The same for all who read the same file.

    A message that has no time, or only whole seconds, is told from others like it by its place.
    """
    message, speaker = said.message, said.speaker
    own = message.header.stamp if message.header is not None else None
    taken_ns = message.launch.taken_ns
    where = f"{said.scope}|{said.place.offset}" if taken_ns is None else f"{taken_ns}"
    where += f"+{message.start}"
    who = f"{speaker.host}|{speaker.pid}|{speaker.rank}"
    written = f"{kind}|{who}|{'' if '.' in (own or '') else where}|{message.text}"
    return "fault-" + blake2b(written.encode("utf-8", "replace"), digest_size=8).hexdigest()


def _family(message: Message) -> str | None:
    at = message.header.file_line if message.header is not None else None
    known = release_at(*at) if at is not None else None
    return message.family if known is None else f"nccl {known}"


def _short(text: str) -> str:
    return text.encode("utf-8", "replace")[:LONGEST_TEXT_BYTES].decode("utf-8", "ignore")
