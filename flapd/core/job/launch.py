"""Launch prefixes: what launchers, container runtimes and tools put before each line.

srun --label "12: ", mpirun --tag-output "[1,12]<stdout>:", torchrun "[default12]:", PyTorch's
own "[rank12]:", Ray "(Worker pid=7, ip=10.0.0.1) ", pdsh "node01: ", the CRI log format
"2026-11-30T08:32:11.123456789Z stdout F ", grep "rank12.log:"; any of them, in any order.
"""

import re

import msgspec

from flapd.core.job.clock import with_zone

_STAMP = re.compile(
    r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)"
    r"(?: std(?:out|err) [FP])? ?",
    re.ASCII,
)
_MPIRUN = re.compile(
    r"\[(?:[\w.-]{1,64}@)?\d{1,9},(?P<rank>\d{1,9})\]<std(?:out|err)>: ?", re.ASCII
)
_RANK = re.compile(r"\[rank(?P<rank>\d{1,7})\]: ?", re.ASCII)
_ROLE = re.compile(r"\[[A-Za-z_]{1,32}\d{1,6}\]: ?", re.ASCII)
_RAY = re.compile(
    r"\([\w.: ]{1,64}? ?pid=(?P<pid>\d{1,10})(?:, ip=(?P<host>[\w.:-]{1,64}))?\) ?", re.ASCII
)
_SRUN = re.compile(r" {0,8}\d{1,7}: ?", re.ASCII)
_NAME = re.compile(r"(?!srun:|slurmstepd:)(?P<host>[A-Za-z][\w-]{0,62}): (?=\[|\d)", re.ASCII)
_FILE = re.compile(
    r"[\w./-]{1,200}\.(?:log|out|err|txt)(?:(?::\d{1,12})?:|(?:-\d{1,12})?-)", re.ASCII
)

_PREFIXES = (_STAMP, _MPIRUN, _RANK, _ROLE, _RAY, _SRUN, _FILE, _NAME)
_MOST = 8
_LONGEST = 512


class Launch(msgspec.Struct, frozen=True):
    """What the prefixes of a line say."""

    label: str = ""
    """The same for all lines of one process, as far as the launcher tells them apart."""
    rank: int | None = None
    host: str | None = None
    pid: int | None = None
    taken_ns: int | None = None
    """When the container's runtime took the line, unix time."""
    length: int = 0


def launch_of(line: str) -> Launch:
    head = line[:_LONGEST]
    label, values, taken_ns, position = "", dict[str, str](), None, 0
    for _ in range(_MOST):
        match = next(filter(None, (one.match(head, position) for one in _PREFIXES)), None)
        if match is None:
            break
        if match.re is _STAMP:
            taken_ns = with_zone(match[0])
        elif match.re is not _RANK:
            # PyTorch puts its rank only before the first line of a message.
            label += match[0]
        values |= {key: value for key, value in match.groupdict().items() if value}
        position = match.end()
    return Launch(
        label,
        rank=_number(values.get("rank")),
        host=values.get("host"),
        pid=_number(values.get("pid")),
        taken_ns=taken_ns,
        length=position,
    )


def _number(written: str | None) -> int | None:
    return None if written is None else int(written)
