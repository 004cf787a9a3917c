"""The real job reader beside real processes, logs and dumps."""

from pathlib import Path

import msgspec
import pytest

from flapd.model.duration import parse_duration
from flapd.model.finding import DumpWritten
from flapd.model.job import JobFound, ReadFile
from flapd.model.observation import DumpsRead, FaultRead, JobSeen, JobsPresent, Noted
from flapd.sources.follow.position import Position, encode
from flapd.sources.job_reader_link import POSITIONS_FILE, ReaderHealth, ReaderOrders, Told
from flapd.sources.settings import DumpsSettings, JobsSettings, LogsSettings
from tests.core.job.test_dump import content, entry
from tests.sources.follow.lines import timeout
from tests.sources.follow.surroundings import Reader
from tests.sources.jobs.fake_proc import FakeProc
from tests.sources.jobs.processes import rank, torchrun
from tests.sources.running_reader import RunningReader, job_reader

pytestmark = pytest.mark.system

PORT_ERROR = (
    "node1:{}:8 [0] transport/net_ib.cc:100 NCCL WARN NET/IB : mlx5_0:1 Got async event : "
    "port error\n"
)


def orders(root: Path, **more: object) -> ReaderOrders:
    made = ReaderOrders(
        "node1",
        "/sys",
        "/proc",
        str(root),
        jobs=JobsSettings(every=parse_duration("1s")),
        pods=str(root / "pods"),
    )
    return msgspec.structs.replace(made, **more)


def job_named(name: str, told: Told) -> JobFound | None:
    """Other tests may have jobs at the same time."""
    return told.found if isinstance(told, JobSeen) and told.found.job == name else None


def seen_in(names: set[str], told: Told) -> set[str]:
    """With this one, where it is a job."""
    if isinstance(told, JobSeen):
        names.add(told.found.job)
    return names


def present(name: str, told: Told, *, runs: bool) -> JobsPresent | None:
    return told if isinstance(told, JobsPresent) and (name in told.jobs) == runs else None


def position_of(reader: RunningReader, path: Path) -> Position:
    """Once it is known whose log it is."""
    return reader.until(
        lambda told: (
            told if isinstance(told, Position) and str(path) in told.key and told.jobs else None
        )
    )


def is_followed(reader: RunningReader, path: Path) -> None:
    reader.until(
        lambda told: told if isinstance(told, Position) and str(path) in told.key else None
    )


def test_a_job_is_told_with_its_ranks_and_its_end_is_told_at_once(tmp_path: Path) -> None:
    """Its forked worker is no rank, nor is a wrapper with the same environment."""
    (tmp_path / ".nccl.conf").write_text("NCCL_IB_TIMEOUT=22\n")
    environment = torchrun(3, "run-a", HOME=str(tmp_path), SECRET="hidden")
    slowly = orders(tmp_path, jobs=JobsSettings(every=parse_duration("2s")))
    with rank("bare", environment), job_reader(slowly) as reader:
        with rank("fork", environment) as process:
            found = reader.until(lambda told: job_named("run-a", told))
            process.kill()
        reader.until(lambda told: present("run-a", told, runs=False))

    assert [(one.rank, one.pid) for one in found.ranks] == [(3, process.pid)]
    assert found.world_size == 16
    assert ReadFile(str(tmp_path / ".nccl.conf"), "NCCL_IB_TIMEOUT=22\n") in found.conf_files
    assert "hidden" not in repr(found)


def test_the_logs_of_a_job_are_read_from_their_start_and_belong_to_it(tmp_path: Path) -> None:
    output, debug = tmp_path / "out.log", tmp_path / "nccl.log"
    output.touch()
    debug.write_text(PORT_ERROR.format(1))
    environment = torchrun(0, "run-b", NCCL_DEBUG_FILE=str(debug))
    with rank("threads", environment, debug, output=output), job_reader(orders(tmp_path)) as reader:
        before = reader.fault()
        is_followed(reader, debug)
        with output.open("a") as file:
            file.write(timeout(7))
        after = reader.fault()

    assert (before.job, before.pid, before.arrived_ns) == ("run-b", 1, None)
    assert (after.job, after.seq) == ("run-b", 7)
    assert after.arrived_ns is not None


def test_what_the_launcher_reports_after_the_end_is_still_the_jobs(tmp_path: Path) -> None:
    output = tmp_path / "out.log"
    with job_reader(orders(tmp_path)) as reader:
        with rank("threads", torchrun(0, "run-c"), output=output):
            is_followed(reader, output)
        reader.until(lambda told: present("run-c", told, runs=False))
        with output.open("a") as file:
            file.write(timeout(7))

        assert reader.fault().job == "run-c"


def test_the_last_words_of_a_job_that_ended_while_nobody_read_are_read_and_are_its(
    tmp_path: Path,
) -> None:
    output, other = tmp_path / "out.log", tmp_path / "replaced.log"
    other.write_text("step 1\n")
    with (
        job_reader(orders(tmp_path)) as reader,
        rank("threads", torchrun(0, "run-k"), output=output),
        rank("threads", torchrun(0, "run-l"), output=other),
    ):
        positions = [position_of(reader, path) for path in (output, other)]
    (tmp_path / POSITIONS_FILE).write_bytes(encode({one.key: one for one in positions}))
    with output.open("a") as file:
        file.write(timeout(7))
    other.unlink()
    other.write_text(timeout(8))

    with job_reader(orders(tmp_path)) as reader:
        last = reader.fault()
        for _ in range(3):
            reader.next(ReaderHealth)

    assert (last.job, last.seq, last.arrived_ns) == ("run-k", 7, None)
    told = [one.fault for one in reader.told if isinstance(one, FaultRead)]
    assert [one.seq for one in told if one.source and str(tmp_path) in one.source.file] == [7]


def test_a_log_whose_job_is_over_belongs_to_nobody_at_the_next_start(tmp_path: Path) -> None:
    around = Reader()
    (tmp_path / "a.log").write_text("")
    file = around.follow(tmp_path / "a.log", job="4711")
    file.turn()
    (before,) = around.positions.values()
    file.jobs.clear()
    file._position_at_ns = 0
    file.turn()
    (after,) = around.positions.values()

    assert (before.jobs, after.jobs) == (("4711",), ())


def test_a_log_named_by_the_configuration_is_followed_from_its_end(tmp_path: Path) -> None:
    old, new = tmp_path / "old.log", tmp_path / "new.log"
    old.write_text(timeout(1))
    logs = LogsSettings(paths=(str(tmp_path / "*.log"),))
    with job_reader(orders(tmp_path, logs=logs)) as reader:
        is_followed(reader, old)
        new.write_text(timeout(2))
        first = reader.fault()
        with old.open("a") as file:
            file.write(timeout(3))
        second = reader.fault()

    assert [first.seq, second.seq] == [2, 3]
    assert first.job is None


def test_all_of_a_log_is_read_where_the_configuration_says_so(tmp_path: Path) -> None:
    (tmp_path / "old.log").write_text(timeout(1))
    logs = LogsSettings(paths=(str(tmp_path / "*.log"),), from_start=True)
    with job_reader(orders(tmp_path, logs=logs)) as reader:
        assert reader.fault().seq == 1


def test_logs_of_a_pod_are_found_by_the_pods_uid(tmp_path: Path) -> None:
    """The job's cgroup names the pod; here the tree of processes is one of files."""
    uid = "01234567-89ab-cdef-0123-456789abcdef"
    log = tmp_path / "pods" / f"ns_llama-0_{uid}" / "train" / "0.log"
    log.parent.mkdir(parents=True)
    log.write_text(f"2026-11-30T08:32:11.5Z stderr F {PORT_ERROR.format(5)}")
    fake = FakeProc(tmp_path / "proc")
    cgroup = f"0::/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice/cri-1.scope\n"
    fake.add(700, torchrun(0, "run-d"), threads=["pt_nccl_watchdg"], cgroup=cgroup)
    with job_reader(orders(tmp_path, proc=str(fake.root))) as reader:
        fault = reader.fault()

    assert (fault.job, fault.pid) == ("run-d", 5)
    assert fault.arrived_ns == 1796027531500000000


def test_a_dump_that_a_rank_says_it_wrote_is_read_in_the_jobs_own_root(tmp_path: Path) -> None:
    output, dump = tmp_path / "out.log", tmp_path / "nccl_trace_rank_0"
    job = rank("threads", torchrun(0, "run-e"), output=output)
    with job_reader(orders(tmp_path)) as reader, job:
        is_followed(reader, output)
        dump.write_bytes(msgspec.json.encode(content(entry(6), entry(7, "started"))))
        with output.open("a") as file:
            file.write(
                "[rank0]:[I1130 08:32:11.123456789 ProcessGroupNCCL.cpp:1] [PG 0 Rank 0] "
                f"Finished writing NCCLPG debug info to {dump}\n"
            )
        note = reader.next(Noted)
        read = reader.next(DumpsRead)

    assert note.note == DumpWritten(str(dump), 0)
    assert (read.job, [one.seq for one in read.standings]) == ("run-e", [7])


def test_dumps_that_come_where_the_configuration_looks_are_read(tmp_path: Path) -> None:
    (tmp_path / "rank_0").write_bytes(msgspec.json.encode(content(entry(1, "started"))))
    dumps = DumpsSettings(paths=(str(tmp_path / "rank_*"),))
    with job_reader(orders(tmp_path, dumps=dumps)) as reader:
        reader.next(ReaderHealth)
        reader.next(ReaderHealth)
        reader.next(ReaderHealth)
        (tmp_path / "rank_1").write_bytes(msgspec.json.encode(content(entry(7, "started"))))
        read = reader.next(DumpsRead)

    assert [one.seq for one in read.standings] == [7]


def test_a_dump_that_a_rank_wrote_before_it_ended_is_still_its_jobs(tmp_path: Path) -> None:
    dumps = DumpsSettings(paths=(str(tmp_path / "rank_*"),))
    with job_reader(orders(tmp_path, dumps=dumps)) as reader:
        with rank("threads", torchrun(9, "run-h")):
            reader.until(lambda told: job_named("run-h", told))
        reader.until(lambda told: present("run-h", told, runs=False))
        (tmp_path / "rank_9").write_bytes(msgspec.json.encode(content(entry(7, "started"))))
        read = reader.next(DumpsRead)

    assert read.job == "run-h"


def test_of_two_jobs_with_the_same_rank_a_dump_is_of_the_one_told_to_write_it(
    tmp_path: Path,
) -> None:
    dumps = DumpsSettings(paths=(str(tmp_path / "rank_*"),))
    told = {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": str(tmp_path / "rank_")}
    with (
        job_reader(orders(tmp_path, dumps=dumps)) as reader,
        rank("threads", torchrun(8, "run-i")),
        rank("threads", torchrun(8, "run-j", **told)),
    ):
        running = set[str]()
        reader.until(lambda one: {"run-i", "run-j"} <= seen_in(running, one) or None)
        (tmp_path / "rank_8").write_bytes(msgspec.json.encode(content(entry(7, "started"))))
        read = reader.next(DumpsRead)

    assert read.job == "run-j"


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    loop = tmp_path / "loop.log"
    loop.symlink_to(loop)
    logs = LogsSettings(paths=(str(tmp_path / "*.log"),))
    with job_reader(orders(tmp_path, logs=logs)) as reader:
        health = reader.until(
            lambda told: told if isinstance(told, ReaderHealth) and told.failures else None
        )

    assert "symbolic links" in health.failures[str(loop)]


def test_queue_pairs_can_be_asked_for(tmp_path: Path) -> None:
    with rank("threads", torchrun(0, "run-f")), job_reader(orders(tmp_path)) as reader:
        before = reader.until(lambda told: job_named("run-f", told))
        reader.ask_queue_pairs()
        after = reader.until(lambda told: job_named("run-f", told))

    assert "the ports it uses: not asked yet" in before.blind_to
    assert "the ports it uses: not asked yet" not in after.blind_to


def test_without_jobs_to_find_only_logs_are_read(tmp_path: Path) -> None:
    with rank("threads", torchrun(0, "run-g")):
        silent = orders(tmp_path, jobs=JobsSettings(discover=False))
        with job_reader(silent) as reader:
            for _ in range(3):
                reader.next(ReaderHealth)

    assert not any(isinstance(told, JobSeen | JobsPresent) for told in reader.told)
