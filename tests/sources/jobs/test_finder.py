"""Which jobs a look at the processes tells of; processes as files, for what no test may have."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from flapd.core.job.environment import ALLOWED
from flapd.model.job import ReadFile
from flapd.sources.jobs.attempts import Attempts
from flapd.sources.jobs.finder import Finder, Look
from flapd.sources.jobs.job_record import ASK_AFTER_NS
from flapd.sources.jobs.procfs import ProcFs
from flapd.sources.jobs.queue_pairs import QueuePairs
from flapd.sources.jobs.ranks import HIDDEN
from tests.sources.jobs.fake_proc import BOOT_UNIX_SECONDS, FakeProc
from tests.trees import lay_out

POD = "01234567-89ab-cdef-0123-456789abcdef"
CUDA = {5: "/dev/nvidia0", 6: "/dev/infiniband/uverbs0"}


def rank_environment(rank: int, **more: str) -> dict[str, str]:
    return {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank % 8),
        "WORLD_SIZE": "16",
        "TORCHELASTIC_RUN_ID": "run7",
        "SECRET_TOKEN": "hidden",
        **more,
    }


def no_answer() -> QueuePairs:
    raise OSError(0, "netlink is off")


class Looker:
    def __init__(self, fake: FakeProc) -> None:
        self.queue_pairs: Callable[[], QueuePairs] = no_answer
        self.pods_with_logs: set[str] = set()
        self.attempts = Attempts()
        self.attempts.begin()
        self.finder = Finder(
            ProcFs(fake.root),
            self.attempts,
            lambda: self.queue_pairs(),  # noqa: PLW0108 - tests put another
            lambda uid: uid in self.pods_with_logs,
            discover_logs=True,
        )

    def look(self, *, ask_queue_pairs: bool = False) -> Look:
        return self.finder.look(ask_queue_pairs=ask_queue_pairs)


@pytest.fixture
def looker(fake: FakeProc) -> Looker:
    return Looker(fake)


def test_ranks_are_processes_named_so_that_have_a_gpu_or_verbs(
    fake: FakeProc, looker: Looker
) -> None:
    fake.add(700, rank_environment(1), files=CUDA, start=500)
    fake.add(701, rank_environment(0), files={5: "/dev/nvidia1"})
    fake.add(702, rank_environment(2))  # a wrapper around one
    fake.add(703, {"PATH": "/bin"}, files=CUDA)  # uses a GPU, as no job's rank

    (job,) = looker.look().jobs

    found = job.found
    assert (found.job, found.scheduler, found.world_size, found.gpus) == ("run7", "torchrun", 16, 2)
    assert [(rank.rank, rank.pid) for rank in found.ranks] == [(0, 701), (1, 700)]
    assert found.ranks[1].started_unix_ns == (BOOT_UNIX_SECONDS + 5) * 1_000_000_000


def test_threads_of_pytorch_name_a_rank_that_no_variable_names(
    fake: FakeProc, looker: Looker
) -> None:
    fake.add(690, threads=["raylet"])
    for pid in (700, 701):
        fake.add(pid, {"PATH": "/bin"}, threads=["ray::Train", "pt_nccl_watchdg"], parent=690)

    (job,) = looker.look().jobs

    assert (job.found.job, [rank.pid for rank in job.found.ranks]) == ("process-690", [700, 701])


def test_forked_workers_are_no_ranks_also_when_their_rank_is_gone(
    fake: FakeProc, looker: Looker
) -> None:
    fake.add(700, rank_environment(0), files=CUDA)
    fake.add(701, rank_environment(0), files=CUDA, parent=700)
    fake.add(702, rank_environment(0), files=CUDA, parent=701)
    (job,) = looker.look().jobs
    assert [rank.pid for rank in job.found.ranks] == [700]

    shutil.rmtree(fake.root / "700")

    assert looker.look().jobs == ()


def test_a_process_that_becomes_a_rank_later_is_found(fake: FakeProc, looker: Looker) -> None:
    place = fake.add(700, rank_environment(0))
    for _ in range(10):
        assert looker.look().jobs == ()

    (place / "fd/5").symlink_to("/dev/nvidia0")

    assert len(looker.look().jobs) == 1


def test_a_rank_of_which_only_its_parent_must_learn_the_end_is_over(
    fake: FakeProc, looker: Looker
) -> None:
    place = fake.add(700, rank_environment(0), files=CUDA)
    assert len(looker.look().jobs) == 1
    stat = (place / "stat").read_text()
    (place / "stat").write_text(stat.replace(") S ", ") Z "))
    (place / "environ").write_text("")

    assert looker.look().jobs == ()


def test_nothing_but_allowed_variables_leaves_a_process(fake: FakeProc, looker: Looker) -> None:
    fake.add(700, rank_environment(0, NCCL_IB_TIMEOUT="22"), files=CUDA)

    (job,) = looker.look().jobs

    environment = job.found.environment
    assert environment is not None
    assert environment["NCCL_IB_TIMEOUT"] == "22"
    assert "hidden" not in repr(job)


def test_conf_files_are_those_of_the_jobs_own_root(fake: FakeProc, looker: Looker) -> None:
    lay_out(fake.root, {"home/u/.nccl.conf": "NCCL_IB_TIMEOUT=20\n"})
    (fake.root / "etc").mkdir()
    (fake.root / "etc/nccl.conf").symlink_to("/home/u/.nccl.conf")
    fake.add(700, rank_environment(0, HOME="/home/u"), files=CUDA)

    (job,) = looker.look().jobs

    text = "NCCL_IB_TIMEOUT=20\n"
    assert job.found.conf_files == (
        ReadFile("/home/u/.nccl.conf", text),
        ReadFile("/etc/nccl.conf", text),
    )


def test_a_conf_file_that_is_not_there_sets_nothing_and_one_that_is_no_file_is_not_known(
    fake: FakeProc, looker: Looker
) -> None:
    (fake.root / "etc/nccl.conf").mkdir(parents=True)
    fake.add(700, rank_environment(0, NCCL_CONF_FILE="/nowhere"), files=CUDA)

    (job,) = looker.look().jobs

    assert job.found.conf_files == (ReadFile("/nowhere", ""), ReadFile("/etc/nccl.conf", None))


def test_releases_are_told_by_what_is_mapped(fake: FakeProc, looker: Looker) -> None:
    lay_out(
        fake.root,
        {"env/torch/version.py": "from x import y\n__version__ = '2.9.1+cu128'\ncuda = '12.8'\n"},
    )
    fake.add(
        700,
        rank_environment(0),
        files=CUDA,
        libraries="7f00-7f01 r-xp 0 8:1 5 /env/torch/lib/libtorch_cuda.so\n"
        "7f02-7f03 r-xp 0 8:1 6 /usr/lib/x86_64-linux-gnu/libnccl.so.2.27.5\n",
    )

    (job,) = looker.look().jobs

    assert (job.found.torch, job.found.nccl) == ("2.9.1", "2.27.5")


def test_a_container_has_its_own_pids_and_host_names(fake: FakeProc, looker: Looker) -> None:
    environment = rank_environment(0, HOSTNAME="llama-worker-0.svc", KUBERNETES_SERVICE_HOST="x")
    fake.add(700, environment, files=CUDA, inner_pid=17)

    (job,) = looker.look().jobs

    (rank,) = job.found.ranks
    assert (rank.pid, rank.inner_pid, rank.host) == (700, 17, "llama-worker-0")


def test_logs_are_what_ranks_have_open_and_what_is_a_pipe_is_told(
    fake: FakeProc, looker: Looker
) -> None:
    environment = rank_environment(0, NCCL_DEBUG_FILE="nccl.%p.log")
    fake.add(
        700,
        environment,
        inner_pid=17,
        files={**CUDA, 1: "/data/out.log", 2: "pipe:[77]", 9: "/work/nccl.17.log", 10: "/data/x"},
    )

    (job,) = looker.look().jobs

    assert [(file.path, file.descriptor, file.mount) for file in job.files] == [
        ("/data/out.log", 1, 22),
        ("/work/nccl.17.log", 9, 22),
    ]
    assert "standard error is a pipe (1 of 1 ranks)" in job.found.blind_to


def test_a_log_in_memory_is_a_file_and_a_device_is_none(fake: FakeProc, looker: Looker) -> None:
    fake.add(700, rank_environment(0), files={**CUDA, 1: "/dev/shm/out.log", 2: "/dev/null"})

    (job,) = looker.look().jobs

    assert [file.path for file in job.files] == ["/dev/shm/out.log"]
    assert "standard error is /dev/null (1 of 1 ranks)" in job.found.blind_to


def test_a_pipe_of_a_pod_whose_logs_are_here_hides_nothing(fake: FakeProc, looker: Looker) -> None:
    cgroup = f"0::/kubepods.slice/kubepods-pod{POD.replace('-', '_')}.slice/cri-1.scope\n"
    fake.add(700, rank_environment(0), files={**CUDA, 1: "pipe:[77]"}, cgroup=cgroup)
    looker.pods_with_logs.add(POD)

    (job,) = looker.look().jobs

    assert job.pods == {POD}
    assert not any("pipe" in one for one in job.found.blind_to)


def test_why_the_ports_are_not_known_is_told(fake: FakeProc, looker: Looker) -> None:
    fake.add(700, rank_environment(0), files=CUDA)

    (job,) = looker.look(ask_queue_pairs=True).jobs

    assert job.found.ports == {}
    assert "the ports it uses: netlink is off" in job.found.blind_to


def test_ports_are_those_of_its_threads_queue_pairs(fake: FakeProc, looker: Looker) -> None:
    fake.add(700, rank_environment(0), files=CUDA)
    lay_out(fake.root, {"733/status": "Name:\tpython\nTgid:\t700\n"})  # a thread of it
    looker.queue_pairs = lambda: QueuePairs(
        {733: Counter({"a/1": 2}), 999: Counter({"b/1": 1})}, {733: Counter({"a/1": 1})}, ()
    )

    (job,) = looker.look(ask_queue_pairs=True).jobs

    assert job.found.ports == {"a/1": "queue_pair"}
    assert job.found.queue_pairs_in_error == {"a/1": 1}


def test_queue_pairs_are_not_asked_for_again_and_again(fake: FakeProc, looker: Looker) -> None:
    fake.add(700, rank_environment(0), files=CUDA)
    asked: list[int] = []

    def count() -> QueuePairs:
        asked.append(1)
        return QueuePairs({}, {}, ())

    looker.queue_pairs = count
    looker.look()
    record = looker.finder._records["run7"]
    record._found_ns -= ASK_AFTER_NS[-1]
    for _ in range(20):
        looker.look()

    assert len(asked) == len(ASK_AFTER_NS)


def test_hidden_processes_are_told(fake: FakeProc, looker: Looker) -> None:
    assert looker.look().blind_to == ()
    shutil.rmtree(fake.root / "1")

    assert looker.look().blind_to == (HIDDEN,)


def test_an_environment_that_is_too_long_to_pass_is_left_out_with_its_reason(
    fake: FakeProc, looker: Looker
) -> None:
    environment = rank_environment(0) | {
        name: "\xff" * 500 for name in ALLOWED if name not in rank_environment(0)
    }
    fake.add(700, environment, threads=["pt_nccl_watchdg"])

    (job,) = looker.look().jobs

    assert job.found.environment is None
    assert "its environment is longer than flapd keeps" in job.found.blind_to


def test_a_rank_whose_memory_is_locked_is_left_alone_and_that_is_told(
    fake: FakeProc, looker: Looker
) -> None:
    fake.add(700, rank_environment(0), files=CUDA)
    looker.attempts.hanging.add(700)

    look = looker.look()

    assert look.jobs == ()
    assert any("memory is locked" in one for one in look.blind_to)


def test_procfs_of_another_root_is_read_alone(fake: FakeProc, tmp_path: Path) -> None:
    assert ProcFs(fake.root).processes().keys() == {1}
