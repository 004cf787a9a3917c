"""Which job a process belongs to, by what launchers put into environments and cgroups."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.jobs.membership import gpus_of, membership_of, names_a_rank

TORCHRUN = {
    "RANK": "9",
    "LOCAL_RANK": "1",
    "WORLD_SIZE": "16",
    "MASTER_ADDR": "10.0.0.1",
    "MASTER_PORT": "29500",
    "TORCHELASTIC_RUN_ID": "none",
}
SLURM = {"SLURM_JOB_ID": "4711", "SLURM_PROCID": "3", "SLURM_NTASKS": "8", "SLURM_LOCALID": "3"}
KUBERNETES = {"KUBERNETES_SERVICE_HOST": "10.96.0.1", "HOSTNAME": "llama-worker-3"}
POD = "0::/kubepods.slice/kubepods-pod01234567_89ab_cdef_0123_456789abcdef.slice/cri-1.scope\n"


@pytest.mark.parametrize(
    ("environment", "job", "scheduler"),
    [
        (TORCHRUN, "10.0.0.1:29500", "torchrun"),
        (TORCHRUN | {"TORCHELASTIC_RUN_ID": "run7"}, "run7", "torchrun"),
        (TORCHRUN | SLURM, "4711", "slurm"),
        (SLURM, "4711", "slurm"),
        (TORCHRUN | KUBERNETES, "llama", "kubernetes"),
        (KUBERNETES | {"HOSTNAME": "llama-master-0"}, "llama", "kubernetes"),
        (KUBERNETES | {"HOSTNAME": "llama-node-0-12-x7k2p"}, "llama-node-0", "kubernetes"),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, None, "mpi"),
        ({}, None, None),
    ],
)
def test_the_name_that_says_most_is_the_jobs(
    environment: dict[str, str], job: str | None, scheduler: str | None
) -> None:
    found = membership_of(environment, "")

    assert (found.job, found.scheduler) == (job, scheduler)


@pytest.mark.parametrize(
    ("environment", "rank", "local_rank", "world_size"),
    [
        (TORCHRUN, 9, 1, 16),
        (SLURM, 3, 3, 8),
        (TORCHRUN | SLURM, 9, 1, 16),  # one task a node: SLURM_PROCID is the node's number
        ({"WORLD_SIZE": "16"} | SLURM, None, 3, 16),
        ({"OMPI_COMM_WORLD_RANK": "2", "OMPI_COMM_WORLD_SIZE": "4"}, 2, None, 4),
        ({"PMI_RANK": "1", "PMI_SIZE": "2"}, 1, None, 2),
        ({"RANK": "x", "WORLD_SIZE": "-1"}, None, None, None),
        ({"RANK": "99999999999"}, None, None, None),
    ],
)
def test_ranks_are_those_of_the_whole_job(
    environment: dict[str, str], rank: int | None, local_rank: int | None, world_size: int | None
) -> None:
    found = membership_of(environment, "")

    assert (found.rank, found.local_rank, found.world_size) == (rank, local_rank, world_size)


def test_a_cgroup_tells_where_the_environment_does_not() -> None:
    slurm = membership_of({}, "0::/system.slice/slurmstepd.scope/job_4711/step_0/user/task_0\n")
    pod = membership_of({}, POD)

    assert (slurm.job, slurm.scheduler) == ("4711", "slurm")
    assert (pod.pod, pod.scheduler) == ("01234567-89ab-cdef-0123-456789abcdef", "kubernetes")


@pytest.mark.parametrize(
    ("environment", "ranks", "devices", "gpus"),
    [
        ({"SLURM_GPUS_ON_NODE": "8"}, 1, 8, 8),
        ({}, 8, 8, 8),
        ({}, 1, 8, 8),
        ({"CUDA_VISIBLE_DEVICES": "0,1"}, 1, 8, 2),
        ({"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 4, 8, 4),
        ({}, 2, 0, None),
    ],
)
def test_gpus_are_counted_as_allocated_else_by_ranks(
    environment: dict[str, str], ranks: int, devices: int, gpus: int | None
) -> None:
    assert gpus_of(environment, ranks, devices) == gpus


@given(st.dictionaries(st.sampled_from([*TORCHRUN, *SLURM, *KUBERNETES]), st.text()), st.text())
def test_whatever_an_environment_holds_a_name_can_be_shown(
    environment: dict[str, str], cgroup: str
) -> None:
    found = membership_of(environment, cgroup)

    assert found.job is None or (found.job.isprintable() and len(found.job) <= 128)
    names_a_rank(environment)
