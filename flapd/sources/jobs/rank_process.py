"""RankProcess: is this process a rank of a job, and what of it is there to know."""

import re

import msgspec

from flapd.core.job.environment import allowed_of
from flapd.sources.files import reason_of
from flapd.sources.jobs.membership import Membership, membership_of, names_a_rank
from flapd.sources.jobs.procfs import ProcFs

_NCCL_THREADS = ("pt_nccl_watchdg", "pt_nccl_heartbt", "NCCL ")
"""PyTorch's, since 2.5 (ProcessGroupNCCL.cpp), and NCCL's own with NCCL_SET_THREAD_NAME."""
_GPU = re.compile(r"/dev/(?:nvidia\d+|kfd|dri/renderD\d+)")
_VERBS = re.compile(r"/dev/infiniband/uverbs\d+")
_HOME = re.compile(rb"(?:^|\0)HOME=(/[^\0]{0,1023})(?=\0|$)")
_LARGEST_KEPT_BYTES = 32 * 1024
"""What is kept of an environment passes the link with all else in one datagram."""


class RankProcess(msgspec.Struct, frozen=True):
    """A process that has what only a rank has, or its forked worker, which inherits most of it."""

    pid: int
    ancestors: tuple[int, ...]
    owner: int
    started_unix_ns: int
    inner_pid: int | None
    environment: dict[str, str] | None
    home: str | None
    membership: Membership
    gpus: frozenset[str]
    """GPU files it has open."""
    why_blind: str | None
    """Why its environment is not known."""


class Block(msgspec.Struct, frozen=True):
    """What of an environment may be kept, or why it is not known."""

    allowed: dict[str, str] | None
    home: str | None = None
    why_not: str | None = None

    @property
    def names_a_rank(self) -> bool:
        return self.allowed is not None and names_a_rank(self.allowed)


def block_of(proc: ProcFs, pid: int) -> Block:
    try:
        raw = proc.environment(pid)
    except PermissionError as error:
        return Block(None, why_not=f"its environment cannot be read: {reason_of(error)}")
    allowed, home = allowed_of(raw), _HOME.search(raw)
    if sum(len(value.encode()) for value in allowed.values()) > _LARGEST_KEPT_BYTES:
        return Block(None, why_not="its environment is longer than flapd keeps")
    return Block(allowed, None if home is None else home[1].decode("utf-8", "replace"))


def rank_process(proc: ProcFs, pid: int, block: Block) -> RankProcess | None:
    """None where it is none, or not yet; OSError where it has ended."""
    gpus, has_verbs = _devices(proc, pid) if block.names_a_rank else (frozenset[str](), False)
    if not gpus and not has_verbs and not _has_nccl(proc, pid):
        return None
    environment = block.allowed or {}
    return RankProcess(
        pid=pid,
        ancestors=proc.ancestors(pid),
        owner=proc.owner(pid),
        started_unix_ns=proc.started_unix_ns(pid),
        inner_pid=proc.inner_pid(pid),
        environment=block.allowed,
        home=block.home,
        membership=membership_of(environment, proc.cgroup(pid)),
        gpus=gpus,
        why_blind=block.why_not,
    )


def is_forked_from(one: RankProcess, other: RankProcess) -> bool:
    """It is a worker of the other: a fork has all its files, but none of its threads."""
    return other.pid in one.ancestors and one.environment == other.environment


def _has_nccl(proc: ProcFs, pid: int) -> bool:
    return any(name.startswith(_NCCL_THREADS) for name in proc.threads(pid))


def _devices(proc: ProcFs, pid: int) -> tuple[frozenset[str], bool]:
    """GPU files it has open, and whether it has verbs; none of both where that is hidden."""
    try:
        files = set(proc.files(pid).values())
    except PermissionError:
        return frozenset(), False
    gpus = frozenset(file for file in files if _GPU.fullmatch(file))
    return gpus, any(_VERBS.fullmatch(file) for file in files)
