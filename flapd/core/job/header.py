"""Headers: what NCCL and PyTorch put before a message, and where one message ends in a line.

NCCL: ncclDebugLog in src/debug.cc, up to 2.30.7. PyTorch: c10/util/Logging.cpp; its Python side
prints likewise (torch/_logging).
"""

import re
from itertools import pairwise

import msgspec

_NCCL = (
    r"(?:\[(?P<nccl_stamp>\d[^\[\]]{4,40})\] ?)?"
    # A name begins at the start of a word: without that, each character is tried as one.
    r"(?<![^\s:\[\]<>.])(?P<host>[^\s:\[\]<>.]{1,64}):(?P<pid>\d{1,10}):\d{1,10} \[-?\d{1,4}\] "
    r"(?:(?P<nccl_file>[\w./+-]{1,128}):(?P<nccl_line>\d{1,6}) (?:\(\w{1,80}\) )?)?"
    r"NCCL (?P<level>[A-Z]{3,8}) "
)
_TORCH = (
    r"(?:\[rank(?P<rank>\d{1,7})\]:)?"
    r"(?:\[[IWEF] |\[?[IWEF](?P<torch_stamp>\d{3,4} \d\d:\d\d:\d\d\.\d{3,9})(?: +\d{1,20}){0,2} )"
    r"[\w./+-]{1,128}:\d{1,6}\] "
)
_HEADER = re.compile(f"{_NCCL}|{_TORCH}", re.ASCII)
_HEADER_BYTES = re.compile(_HEADER.pattern.encode())
_GROUP = re.compile(
    r"\[(?:PG ID \d{1,9} PG GUID (?P<guid>[^\s(\[\]]{1,64})(?:\((?P<name>[^()]{1,128})\))? "
    r"|PG (?P<id>[^\s\[\]]{1,64}) (?:\((?P<old_name>[^()]{1,128})\) )?)?"
    r"Rank (?P<group_rank>\d{1,9})\]",
    re.ASCII,
)


class Header(msgspec.Struct, frozen=True):
    """Who says it, and when."""

    stamp: str | None = None
    host: str | None = None
    pid: int | None = None
    rank: int | None = None
    nccl: bool = False
    file_line: tuple[str, int] | None = None


class Segment(msgspec.Struct, frozen=True):
    """One header with all that follows it until the next; the first may have none."""

    start: int
    header: Header | None
    text: str
    """From its header on."""


def segments(line: str) -> list[Segment]:
    """The line cut at every header, since several processes may have written it."""
    found = list(_HEADER.finditer(line))
    starts = [match.start() for match in found]
    pieces = [
        Segment(start, _header(match), line[start:end])
        for match, (start, end) in zip(found, pairwise([*starts, len(line)]), strict=True)
    ]
    headless = line[: starts[0]] if starts else line
    return [Segment(0, None, headless), *pieces] if headless else pieces


def holds_header(lines: bytes, start: int, end: int) -> bool:
    return _HEADER_BYTES.search(lines, start, end) is not None


def _header(match: re.Match[str]) -> Header:
    values = match.groupdict()
    pid, rank, line = values["pid"], values["rank"], values["nccl_line"]
    return Header(
        stamp=values["nccl_stamp"] or values["torch_stamp"],
        host=values["host"],
        pid=None if pid is None else int(pid),
        rank=None if rank is None else int(rank),
        nccl=values["level"] is not None,
        file_line=None if line is None else (values["nccl_file"], int(line)),
    )


def process_group(text: str) -> tuple[str | None, int | None]:
    """The group and the rank in it that the text names; the last where there are several."""
    group, rank = None, None
    for match in _GROUP.finditer(text):
        rank = int(match["group_rank"])
        named = match["name"] or match["old_name"] or match["guid"] or match["id"]
        group = named or group
    return group, rank
