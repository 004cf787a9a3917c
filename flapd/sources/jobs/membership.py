"""Membership: which job a process belongs to, and as what, by its environment and cgroup.

Variables by launcher: torchrun (torch/distributed/elastic/agent/server/local_elastic_agent.py),
srun, Open MPI, PMI(x), MVAPICH, Kubernetes' training operators.
"""

import re
from collections.abc import Mapping

import msgspec

from flapd.core.job.environment import number

_LONGEST_NAME = 128
_SLURM_JOB = re.compile(r"/job_(\d{1,12})(?:/|$)", re.MULTILINE)
_POD = re.compile(
    r"pod([0-9a-f]{8})[-_]([0-9a-f]{4})[-_]([0-9a-f]{4})[-_]([0-9a-f]{4})[-_]([0-9a-f]{12})"
)
_OF_POD = re.compile(r"(?:-(?:master|worker|launcher|replica|node))?-\d{1,6}(?:-[a-z0-9]{5})?$")
_RANKS = ("RANK", "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK")
_LOCAL_RANKS = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID")
_SIZES = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")


class Membership(msgspec.Struct, frozen=True):
    job: str | None
    """None: nothing names it."""
    scheduler: str | None
    rank: int | None
    local_rank: int | None
    world_size: int | None
    pod: str | None
    """Its UID."""


def membership_of(environment: Mapping[str, str], cgroup: str) -> Membership:
    """Of a process whose environment could be read, else of an empty one."""
    pod = _POD.search(cgroup)
    slurm = environment.get("SLURM_JOB_ID") or _found(_SLURM_JOB, cgroup)
    rank, world_size = _number(environment, *_RANKS), _number(environment, *_SIZES)
    if rank is None and "WORLD_SIZE" not in environment:
        # Under torchrun there is one task a node: then this is the number of the node.
        rank = _number(environment, "SLURM_PROCID")
        world_size = world_size or _number(environment, "SLURM_NTASKS")
    return Membership(
        job=_named(environment, slurm),
        scheduler=_scheduler(environment, slurm, is_pod=pod is not None),
        rank=rank,
        local_rank=_number(environment, *_LOCAL_RANKS),
        world_size=world_size,
        pod=None if pod is None else "-".join(pod.groups()),
    )


def names_a_rank(environment: Mapping[str, str]) -> bool:
    """A launcher started it, or something it comes from, as a rank."""
    return any(name in environment for name in (*_RANKS, "SLURM_PROCID"))


def gpus_of(environment: Mapping[str, str], ranks: int, devices: int) -> int | None:
    """On this node: as allocated, else one a rank, else what a single process has open."""
    allocated = _number(environment, "SLURM_GPUS_ON_NODE")
    if allocated:
        return allocated
    if not devices:
        return None
    visible = environment.get("CUDA_VISIBLE_DEVICES") or environment.get("HIP_VISIBLE_DEVICES")
    alone = len(visible.split(",")) if visible else devices
    return ranks if ranks > 1 else alone


def _named(environment: Mapping[str, str], slurm: str | None) -> str | None:
    run = environment.get("TORCHELASTIC_RUN_ID", "none")
    pod = environment.get("HOSTNAME") if "KUBERNETES_SERVICE_HOST" in environment else None
    address, port = environment.get("MASTER_ADDR"), environment.get("MASTER_PORT")
    names = (
        slurm,
        None if run == "none" else run,
        None if pod is None else _OF_POD.sub("", pod),
        f"{address}:{port}" if address and port else None,
    )
    return next((_clean(name) for name in names if name), None)


def _scheduler(environment: Mapping[str, str], slurm: str | None, *, is_pod: bool) -> str | None:
    if slurm is not None:
        return "slurm"
    if is_pod or "KUBERNETES_SERVICE_HOST" in environment:
        return "kubernetes"
    if "TORCHELASTIC_RUN_ID" in environment:
        return "torchrun"
    is_mpi = any(name in environment for name in _RANKS[1:])
    return "mpi" if is_mpi else None


def _number(environment: Mapping[str, str], *names: str) -> int | None:
    value = number(environment, *names)
    return value if value is not None and 0 <= value < 2**31 else None


def _found(pattern: "re.Pattern[str]", text: str) -> str | None:
    found = pattern.search(text)
    return None if found is None else found[1]


def _clean(name: str) -> str:
    """It goes onto screens and into labels."""
    shown = "".join(sign if sign.isprintable() else "?" for sign in name[:_LONGEST_NAME])
    return shown.encode("utf-8", "replace").decode()
