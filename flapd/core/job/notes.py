"""Notes: what messages tell besides faults: settings in force, members, progress, dumps."""

from collections.abc import Callable
from typing import Literal

from flapd.core.job.environment import ALLOWED
from flapd.core.job.said import Said
from flapd.model.finding import DumpWritten, Member, Network, Note, PlannedPause, Setting, Step


def notes_of(said: Said) -> list[Note]:
    """In order; none where the message is of a fault and tells nothing besides."""
    kind = said.message.form.kind
    return _NOTES.get(kind, _version)(said)


def _version(said: Said) -> list[Note]:
    told = said.text("nccl")
    return [] if told is None else [_setting(said, "nccl", told)]


def _settings(said: Said) -> list[Note]:
    told = {name: said.text(name) for name in ("nccl", "group_timeout_ms")}
    told[said.text("name") or ""] = said.text("value")
    for piece in (said.text("settings") or "").split(", "):
        name, _, value = piece.partition(": ")
        told[name] = value
    return [
        _setting(said, name, value)
        for name, value in told.items()
        if value and (name in ALLOWED or name in ("nccl", "group_timeout_ms"))
    ]


def _setting(said: Said, name: str, value: str) -> Setting:
    speaker = said.speaker
    group = said.message.process_group
    return Setting(name, value, speaker.host, speaker.pid, speaker.rank, group)


def _member(said: Said) -> list[Note]:
    rank, ranks = said.integer("rank"), said.integer("ranks")
    assert rank is not None
    assert ranks is not None
    return [
        Member(
            said.speaker.host,
            said.speaker.pid,
            rank,
            ranks,
            cuda=said.integer("cuda"),
            nvml=said.integer("nvml"),
            bus=said.text("bus"),
            communicator=said.text("communicator"),
        )
    ]


def _network(said: Said) -> list[Note]:
    # Merged NICs: [0]={[0] mlx5_0:1/RoCE, [1] mlx5_1:1/RoCE}
    words = (said.text("hcas") or "").replace("={", " ").replace(",", " ").split()
    hcas = (word.rpartition("]")[2].rstrip("}") for word in words)
    named = tuple(one for one in hcas if ":" in one and "/" in one)
    return [Network(said.speaker.host, said.speaker.pid, named)]


def _step(said: Said) -> list[Note]:
    per_second = said.seconds("per_second")
    seconds = said.seconds("milliseconds", 1000) or said.seconds("seconds")
    return [
        Step(
            framework=said.message.form.name,
            number=said.count("number"),
            seconds=1 / per_second if per_second else seconds,
            time_ns=said.when.time_ns,
            clock_error_ns=said.when.error_ns,
            rank=said.rank,
        )
    ]


def _pause(said: Said) -> list[Note]:
    what: Literal["checkpoint", "evaluation"] = (
        "checkpoint" if said.message.form.kind == "checkpoint" else "evaluation"
    )
    return [PlannedPause(what, said.when.time_ns, said.when.error_ns)]


def _dump_written(said: Said) -> list[Note]:
    return [DumpWritten(said.text("file") or "", said.rank)]


_NOTES: dict[str, Callable[[Said], list[Note]]] = {
    "setting": _settings,
    "settings": _settings,
    "member": _member,
    "network": _network,
    "step": _step,
    "checkpoint": _pause,
    "evaluation": _pause,
    "dump_written": _dump_written,
}
