"""Messages: those of one line that are known, each with who says it and when, so far as it tells.

Several processes write to one file, without locks: a line may hold several messages, and any of
them may be cut off.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from flapd.core.job.form import Form
from flapd.core.job.forms import FORMS
from flapd.core.job.header import Header, Segment, process_group, segments
from flapd.core.job.launch import Launch, launch_of

LONGEST_MESSAGE = 4096
"""Characters; NCCL cuts its own at 1,024."""

_MOST_IN_LINE = 64

_CONTROL = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|.)|[\x00-\x1f\x7f-\x9f]"
)
_STAMP = re.compile(r"\d{4}-\d\d-\d\d[ T_]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?!\d|Z|[+-]\d)", re.ASCII)


class Message(msgspec.Struct, frozen=True):
    """One message; what stands before it in the line is read as its own."""

    form: Form
    start: int
    """Characters into the line."""
    header: Header | None
    launch: Launch
    stamp: str | None
    text: str
    """With its header, if it has one."""
    values: dict[str, str]
    family: str | None
    process_group: str | None
    group_rank: int | None


class _Docker(msgspec.Struct):
    """A line of Docker's json-file driver."""

    log: str
    time: str = ""


_DOCKER = msgspec.json.Decoder(_Docker)


def plain(line: bytes) -> str:
    """The text that a container's process wrote, without colours and control characters."""
    text = line.decode("utf-8", "replace")
    if line.startswith(b'{"log":'):
        text = _from_docker(line) or text
    return _CONTROL.sub("", text)


def _from_docker(line: bytes) -> str | None:
    try:
        written = _DOCKER.decode(line)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return f"{written.time} {written.log}"


def messages(line: str) -> Iterator[Message]:
    """All that are known, in order, up to what a line can hold by accident."""
    launch, told = launch_of(line), 0
    for segment in segments(line):
        for form, start, end in _found(segment.text):
            told += form.kind != "unknown"
            if told <= _MOST_IN_LINE:
                yield _message(segment, launch, form, start, end)


def _found(text: str) -> list[tuple[Form, int, int]]:
    """Which forms, from where and to where in the text."""
    candidates = [form for form in FORMS if form.needle in text]
    # Of those that begin together the one that tells most comes first.
    found = sorted(
        ((start, -end, form) for form in candidates for start, end in form.found_in(text)),
        key=lambda one: one[:2],
    )
    if any(not form.fallback for _, _, form in found):
        found = [one for one in found if not one[2].fallback]
    starts = [start for start, _, _ in found]
    return [
        (form, start, max(-head_end, min(end, start + LONGEST_MESSAGE)))
        for (_, head_end, form), (start, end) in zip(
            found, pairwise([*starts, len(text)]), strict=True
        )
    ]


def _message(segment: Segment, launch: Launch, form: Form, start: int, end: int) -> Message:
    text = segment.text
    own, before = text[start:end], text[:start]
    group, group_rank = process_group(before)
    values = form.read(own)
    is_whole = segment.header is not None and end - start < LONGEST_MESSAGE
    return Message(
        form=form,
        start=segment.start + start,
        header=segment.header,
        launch=launch,
        stamp=_stamp(segment, before, values),
        text=(text[:end] if is_whole else own).strip(),
        values=values,
        family=form.family(own),
        process_group=group,
        group_rank=group_rank,
    )


def _stamp(segment: Segment, before: str, values: dict[str, str]) -> str | None:
    if segment.header is not None and segment.header.stamp is not None:
        return segment.header.stamp
    found = _STAMP.findall(before)
    return values.get("at") or (found[-1] if found else None)
