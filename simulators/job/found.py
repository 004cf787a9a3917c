"""Found: what a look at one node's processes tells of the job, and the dumps they write."""

from collections.abc import Iterator
from typing import Any

from flapd.model.job import JobFound, PortUse, Rank, ReadFile
from flapd.model.observation import JobSeen, JobsPresent
from flapd.model.times import SECOND_NS
from simulators.job.log import end_of, host_of, pid_of, ranks_on
from simulators.job.pickled import pickled
from simulators.job.record import Attempt, Run
from simulators.job.releases import Version
from simulators.job.words.speaker import Clock

_KEPT_ENTRIES = 12
_ENTRY_SECONDS = 0.05
_DUMP_VERSIONS: tuple[tuple[Version, str], ...] = (
    ((2, 3), "1.4"),
    ((2, 4), "2.1"),
    ((2, 5), "2.4"),
    ((2, 8), "2.9"),
    ((2, 9), "2.10"),
)


def environment_of(run: Run, rank: int) -> dict[str, str]:
    """Of a rank's process, as its launcher sets it."""
    spec, software = run.spec, run.spec.software
    local, node = rank % spec.ranks_per_node, spec.node_of(rank)
    found = {
        "RANK": str(rank),
        "LOCAL_RANK": str(local),
        "WORLD_SIZE": str(spec.world_size),
        "LOCAL_WORLD_SIZE": str(spec.ranks_per_node),
        "MASTER_ADDR": host_of(0),
        "MASTER_PORT": "29500",
        "SLURM_JOB_ID": spec.job,
        "SLURM_JOB_NUM_NODES": str(spec.nodes),
        "SLURM_NODEID": str(node),
    }
    if software.launcher == "torchrun":
        prefix = "TORCH_" if software.torch_version >= (2, 2) else ""
        found |= {
            "GROUP_RANK": str(node),
            "TORCHELASTIC_RUN_ID": spec.job,
            f"{prefix}NCCL_ASYNC_ERROR_HANDLING": str(software.handling),
        }
    else:
        found |= {"SLURM_PROCID": str(rank), "SLURM_NTASKS": str(spec.world_size)}
    if software.nccl_debug:
        found["NCCL_DEBUG"] = software.nccl_debug
    if spec.transport.ib_timeout is not None:
        found["NCCL_IB_TIMEOUT"] = str(spec.transport.ib_timeout)
    if spec.transport.retry_cnt != 7:
        found["NCCL_IB_RETRY_CNT"] = str(spec.transport.retry_cnt)
    return found


def jobs_observed(
    run: Run, node: int, origin_ns: int, clock: Clock, ports: dict[str, PortUse]
) -> Iterator[JobSeen | JobsPresent]:
    """Each attempt as it is found some seconds after its start, and when it is gone."""
    for number, attempt in enumerate(run.attempts):
        at_ns = origin_ns + round((attempt.begin + 3.0) * SECOND_NS)
        yield JobSeen(job_found(run, node, number, clock, ports), at_ns)
        yield JobsPresent((run.spec.job,), (), at_ns)
        if attempt.end is not None:
            gone = max(attempt.end.ends[rank] for rank in ranks_on(run, node))
            yield JobsPresent((), (), origin_ns + round((gone + 5.0) * SECOND_NS))


def job_found(
    run: Run, node: int, number: int, clock: Clock, ports: dict[str, PortUse]
) -> JobFound:
    spec, attempt = run.spec, run.attempts[number]
    ranks = ranks_on(run, node)
    return JobFound(
        job=spec.job,
        scheduler="slurm",
        ranks=tuple(_rank(run, rank, number, clock.unix_ns(attempt.begin)) for rank in ranks),
        world_size=spec.world_size,
        gpus=spec.ranks_per_node,
        ports=ports,
        queue_pairs_in_error={},
        environment=environment_of(run, ranks[0]),
        conf_files=(ReadFile("/etc/nccl.conf", ""),),
        torch=spec.software.torch,
        nccl=spec.software.nccl,
    )


def _rank(run: Run, rank: int, attempt: int, started_unix_ns: int) -> Rank:
    return Rank(
        rank=rank,
        pid=pid_of(rank, attempt),
        local_rank=rank % run.spec.ranks_per_node,
        host=host_of(run.spec.node_of(rank)),
        started_unix_ns=started_unix_ns,
    )


def dumps_of(run: Run, node: int, clock: Clock) -> Iterator[tuple[float, int, bytes]]:
    """When, which rank, and what it writes."""
    for attempt in run.attempts:
        for rank, at in sorted(attempt.end.dumps.items()) if attempt.end else ():
            if rank in ranks_on(run, node) and at < end_of(attempt, rank):
                yield at, rank, pickled(_dump(run, attempt, rank, clock))


def _dump(run: Run, attempt: Attempt, rank: int, clock: Clock) -> dict[str, Any]:
    software = run.spec.software
    number = next(
        (n for since, n in reversed(_DUMP_VERSIONS) if since <= software.torch_version), "1.4"
    )
    seq, op, enqueued = _place(attempt, rank)
    entries = [
        _entry(run, attempt, clock, one, op if one == seq else "ALLREDUCE", done=one < seq)
        for one in range(max(1, seq - _KEPT_ENTRIES), enqueued + 1)
    ]
    status = {
        "last_enqueued_collective": enqueued,
        "last_started_collective": min(seq, enqueued),
        "last_completed_collective": seq - 1,
    }
    ranks = str(list(range(run.spec.world_size)))
    return {
        "version": number,
        "nccl_version": software.nccl,
        "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": ranks}},
        "pg_status": {"0": status},
        "entries": entries,
    }


def _place(attempt: Attempt, rank: int) -> tuple[int, str, int]:
    """The collective in which it waits, what it called there, and the last it enqueued."""
    assert attempt.stop is not None
    assert attempt.end is not None
    told = next(
        one.values
        for one in attempt.end.messages
        if one.rank == rank and one.name in {"dump_signal", "dump_observed"}
    )
    return attempt.stop.seq, told["op"], told["enqueued"]


def _entry(
    run: Run, attempt: Attempt, clock: Clock, seq: int, op: str, *, done: bool
) -> dict[str, Any]:
    assert attempt.stop is not None
    created_ns = clock.unix_ns(attempt.stop.enqueued_at + (seq - attempt.stop.seq) * _ENTRY_SECONDS)
    names = {"ALLREDUCE": "all_reduce", "_ALLGATHER_BASE": "_all_gather_base"}
    return {
        "record_id": seq,
        "pg_id": 0,
        "process_group": ("0", "default_pg"),
        "collective_seq_id": seq,
        "seq_id": seq,
        "p2p_seq_id": 0,
        "op_id": seq,
        "profiling_name": f"nccl:{names[op]}",
        "time_created_ns": created_ns,
        "input_sizes": [[67108864]],
        "output_sizes": [[67108864]],
        "state": "completed" if done else "scheduled",
        "time_discovered_started_ns": None,
        "time_discovered_completed_ns": created_ns + SECOND_NS if done else None,
        "retired": done,
        "timeout_ms": round(run.spec.software.group_timeout_seconds * 1000),
        "is_p2p": False,
    }
