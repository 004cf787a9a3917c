"""`flapd analyze`: a post-mortem of logs, dumps and a list of flaps, without an agent."""

import bz2
import gzip
import json
import lzma
import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Callable
from datetime import timezone
from pathlib import Path
from typing import Any

import pytest

from flapd.cli.analyze_evidence import MOST_FAULTS
from flapd.cli.analyze_reading import MOST_MESSAGES, Zone, read
from flapd.cli.main import main
from tests.cli.here import WIDEST

HCAS = "node01:14000:14700 [3] NCCL INFO NET/IB : Using [0]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.1<0>"
MEMBER = (
    "node01:14000:14711 [0] NCCL INFO ncclCommInitRank comm 0x55 rank 0 nranks 1024 cudaDev 0 "
    "nvmlDev 0 busId 1b000 commId 0xabc - Init COMPLETE"
)
TIMEOUT_SET = "node01:14000:14711 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 20."
PORT = (
    "[2026-11-30 08:31:00] node01:14000:14720 [0] transport/net_ib.cc:199 NCCL WARN NET/IB : "
    "mlx5_3:1 Got async event : port error"
)
ERROR = (
    "[2026-11-30 08:31:31] node01:14000:14711 [3] transport/net_ib.cc:1909 NCCL WARN NET/IB : "
    "Got completion from peer 10.0.0.1<53249> with status=12 opcode=0 len=0 vendor err 129 (Send)"
)
WATCHDOG = (
    "[rank3]:[E1130 08:41:11.123456789 ProcessGroupNCCL.cpp:616] "
    "[PG ID 0 PG GUID 0(default_pg) Rank 3] Watchdog caught collective operation timeout: "
    "WorkNCCL(SeqNum=116, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
    "ran for 600026 milliseconds before timing out."
)
STORY = "".join(f"{line}\n" for line in (TIMEOUT_SET, MEMBER, HCAS, PORT, ERROR))


def flap(from_: str, to: str, **changes: Any) -> dict[str, Any]:
    down, up, day = from_, to, "2026-11-30T"
    return {
        "id": "f1",
        "port": "mlx5_3/1",
        "down": {"earliest": f"{day}{down}Z", "latest": f"{day}{down}Z"},
        "up": {"earliest": f"{day}{up}Z", "latest": f"{day}{up}Z"},
        "status": "closed",
        "cause": "link",
        "seen": "observed",
        "layer": "physical",
        "down_seconds": {"min": 60.0, "max": 60.0},
        "span_seconds": 60.0,
        "count": 1,
        **changes,
    }


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "job.log"
    path.write_text(STORY)
    return path


Analyze = Callable[..., dict[str, Any]]


@pytest.fixture
def analyze(capsys: pytest.CaptureFixture[str]) -> Analyze:
    def run(*words: Any) -> dict[str, Any]:
        status = main(["analyze", *map(str, words), "--timezone", "UTC", "--json"])
        assert status in (0, 1), capsys.readouterr().err
        found = json.loads(capsys.readouterr().out)
        assert isinstance(found, dict)
        return found

    return run


def flaps_file(directory: Path, *items: dict[str, Any]) -> Path:
    path = directory / "flaps.json"
    path.write_text(json.dumps({"items": items, "next": None}))
    return path


def test_a_log_gives_its_faults_with_time_and_place(log: Path, analyze: Analyze) -> None:
    found = analyze(log)

    assert found["lines"] == 5
    assert [one["kind"] for one in found["faults"]] == ["port_event", "transport_error"]
    first, error = found["faults"]
    assert first["time"] == "2026-11-30T08:31:00.000000Z"
    assert error["primary"] is True
    assert error["source"] == {"file": str(log), "offset": STORY.index(ERROR)}
    assert found["files"] == [
        {
            "file": str(log),
            "kind": "log",
            "bytes": len(STORY),
            "lines": 5,
            "rank": None,
            "problem": None,
        }
    ]


def test_a_flap_that_outlasted_the_budget_is_the_cause(
    log: Path, tmp_path: Path, analyze: Analyze
) -> None:
    flaps = flaps_file(tmp_path, flap("08:31:00", "08:32:00"))

    (incident,) = analyze(log, "--flaps", flaps)["incidents"]

    assert incident["verdict"] == "caused"
    assert incident["causes"][0]["flap"] == "f1"
    assert incident["causes"][0]["probability"] > 0.9
    assert incident["regime"] == "transport_abort"
    assert incident["world_size"] == 1024
    assert incident["policy"]["ib_timeout"] == {
        "value": 20,
        "low": 20,
        "high": 20,
        "source": "log",
    }


def test_without_a_list_of_flaps_the_cause_is_not_known(log: Path, analyze: Analyze) -> None:
    (incident,) = analyze(log)["incidents"]

    assert incident["verdict"] == "unknown"
    assert any("no list of flaps was given" in one for one in incident["blind_to"])


def test_a_flap_hours_before_is_not_the_cause(log: Path, tmp_path: Path, analyze: Analyze) -> None:
    flaps = flaps_file(tmp_path, flap("02:00:00", "02:01:00"))

    incidents = analyze(log, "--flaps", flaps)["incidents"]

    of_error = [one for one in incidents if one["symptoms"]]
    assert [one["verdict"] for one in of_error] == ["unknown"]


def test_a_port_that_the_job_does_not_use_is_not_blamed(
    log: Path, tmp_path: Path, analyze: Analyze
) -> None:
    flaps = flaps_file(tmp_path, flap("08:31:00", "08:32:00", port="mlx5_9/1"))

    incidents = analyze(log, "--flaps", flaps)["incidents"]

    assert "caused" not in [one["verdict"] for one in incidents]


def test_the_account_is_told_on_a_screen(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flaps = flaps_file(tmp_path, flap("08:31:00", "08:32:00"))

    assert main(["analyze", str(log), "--flaps", str(flaps), "--timezone", "UTC"]) == 0

    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDEST
    assert "Read: 1 log; 5 lines." in out
    assert "11-30 08:31:31.000  node01" in out
    assert "first error" in out
    assert "mlx5_3/1 went down and was back after 60.0 s" in out


PACKED: list[tuple[str, Callable[[bytes], bytes]]] = [
    ("gz", gzip.compress),
    ("xz", lzma.compress),
    ("bz2", bz2.compress),
]


@pytest.mark.parametrize(("ending", "pack"), PACKED, ids=[one[0] for one in PACKED])
def test_a_packed_log_reads_as_the_plain_one_whatever_it_is_called(
    ending: str, pack: Callable[[bytes], bytes], log: Path, tmp_path: Path, analyze: Analyze
) -> None:
    half = len(STORY) // 2
    packed = tmp_path / f"renamed-{ending}"
    packed.write_bytes(pack(STORY[:half].encode()) + pack(STORY[half:].encode()))

    plain, found = analyze(log), analyze(packed)

    assert [one["text"] for one in found["faults"]] == [one["text"] for one in plain["faults"]]
    assert found["files"][0]["bytes"] == len(STORY)


@pytest.mark.parametrize(("ending", "pack"), PACKED, ids=[one[0] for one in PACKED])
def test_a_packed_log_that_is_cut_off_is_read_as_far_as_it_goes(
    ending: str, pack: Callable[[bytes], bytes], tmp_path: Path, analyze: Analyze
) -> None:
    noise = os.urandom(300_000).hex()
    packed = tmp_path / f"job.{ending}"
    packed.write_bytes(pack(f"{STORY}{noise}\n".encode())[:-4096])

    found = analyze(packed)

    assert "is damaged" in found["files"][0]["problem"]
    if ending != "bz2":  # its blocks of 900 kB are whole or not at all
        assert len(found["faults"]) == 2


def test_zstd_is_read_or_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    packed = tmp_path / "job.log.zst"
    packed.write_bytes(b"\x28\xb5\x2f\xfd" + bytes(20))

    status = main(["analyze", str(packed)])

    told = capsys.readouterr()
    assert status in (1, 2)
    assert "zstd -dc" in told.err or "is damaged" in told.out


def test_an_archive_that_wants_all_memory_is_refused(tmp_path: Path, analyze: Analyze) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30, "preset": 0}]
    packed = tmp_path / "job.xz"
    packed.write_bytes(lzma.compress(b"x" * 1000, filters=filters))

    assert "is damaged: Memory usage limit" in analyze(packed)["files"][0]["problem"]


def test_stdin_is_read(log: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "flapd", "analyze", "-", "--year", "2026", "--json"],
        input=gzip.compress(STORY.encode()),
        capture_output=True,
        check=False,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
    assert len(json.loads(done.stdout)["faults"]) == 2


@pytest.mark.parametrize(
    ("zone", "utc"),
    [
        ("UTC", "08:41:11"),
        ("Europe/Berlin", "07:41:11"),
        ("+05:30", "03:11:11"),
        ("UTC-08:00", "16:41:11"),
    ],
)
def test_times_are_of_the_zone_that_is_named(
    zone: str, utc: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "job.log"
    log.write_text(WATCHDOG + "\n")

    assert main(["analyze", str(log), "--timezone", zone, "--year", "2026", "--json"]) == 0

    (fault,) = json.loads(capsys.readouterr().out)["faults"]
    assert fault["time"] == f"2026-11-30T{utc}.123456Z"


def test_the_year_is_that_of_the_file_unless_told(tmp_path: Path, analyze: Analyze) -> None:
    log = tmp_path / "job.log"
    log.write_text(WATCHDOG + "\n")
    os.utime(log, (1_700_000_000, 1_700_000_000))  # 14 November 2023

    assert analyze(log)["faults"][0]["time"][:4] == "2022"
    assert analyze(log, "--year", "2019")["faults"][0]["time"][:4] == "2019"


def dump(state: str, seqs: list[int]) -> dict[str, Any]:
    entries = [
        {
            "process_group": ["0", "default_pg"],
            "collective_seq_id": seq,
            "is_p2p": False,
            "profiling_name": "nccl:all_reduce",
            "time_created_ns": 1_796_027_000_000_000_000 + seq,
            "time_discovered_completed_ns": None,
            "state": "completed" if seq < seqs[-1] else state,
            "retired": seq < seqs[-1],
            "timeout_ms": 600_000,
        }
        for seq in seqs
    ]
    config = {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1, 2]"}}
    return {"version": "2.10", "pg_config": config, "pg_status": {}, "entries": entries}


def test_dumps_are_known_by_their_content_and_tell_who_did_not_come(
    log: Path, tmp_path: Path, analyze: Analyze, capsys: pytest.CaptureFixture[str]
) -> None:
    names = []
    for rank, state, seqs in [(0, "started", [114, 115, 116]), (1, "completed", [114, 115])]:
        path = tmp_path / f"nccl_trace_rank_{rank}"
        path.write_text(json.dumps(dump(state, seqs)))
        names.append(path)

    found = analyze(*names, log)

    assert [(one["kind"], one["rank"]) for one in found["files"]] == [
        ("dump", 0),
        ("dump", 1),
        ("log", None),
    ]
    (standing,) = found["standings"]
    assert (standing["seq"], standing["missing"], standing["silent"]) == (116, [1], [2])
    assert main(["analyze", *map(str, names)]) == 0
    assert "rank 1 never came to it: look there first." in " ".join(capsys.readouterr().out.split())


def test_a_dump_whose_name_tells_no_rank_says_so(tmp_path: Path, analyze: Analyze) -> None:
    path = tmp_path / "trace"
    path.write_text(json.dumps(dump("started", [1, 2])))

    assert "does not end in a rank" in analyze(path)["files"][0]["problem"]


class _Bomb:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch /tmp/flapd-was-here",)


def test_nothing_is_ever_unpickled(tmp_path: Path, analyze: Analyze) -> None:
    path = tmp_path / "nccl_trace_rank_0"
    path.write_bytes(pickle.dumps({"entries": [_Bomb()]}, protocol=2))

    (file,) = analyze(path)["files"]

    assert "it holds the opcode" in file["problem"]
    assert not Path("/tmp/flapd-was-here").exists()


def test_what_only_looks_like_a_dump_is_read_as_a_log(tmp_path: Path, analyze: Analyze) -> None:
    path = tmp_path / "job.log"
    path.write_text('{"version": "this is no dump"\n' + STORY)

    found = analyze(path)

    assert found["files"][0]["kind"] == "log"
    assert len(found["faults"]) == 2


def test_a_log_that_tells_nothing_is_a_negative_answer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "quiet.log").write_text("all is well\n")

    assert main(["analyze", str(tmp_path / "quiet.log")]) == 1
    assert "Nothing in it tells of an error" in capsys.readouterr().out


def test_text_of_a_log_steers_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "job.log"
    path.write_bytes(ERROR.replace("node01", "no\x9bde").encode() + b"\x1b]0;owned\x07\xff\n")

    assert main(["analyze", str(path), "--timezone", "UTC"]) == 0
    out = capsys.readouterr().out
    assert all(char.isprintable() or char == "\n" for char in out)


@pytest.mark.parametrize(
    ("words", "right"),
    [
        (["missing.log"], "missing.log cannot be read: No such file or directory"),
        (["."], ". cannot be read: Is a directory"),
        (["/dev/zero"], "/dev/zero is no regular file"),
        (["job.log", "--timezone", "Mars"], "--timezone Mars: a name such as Europe/Berlin"),
        (["job.log", "--timezone", "../../etc/passwd"], "a name such as Europe/Berlin"),
        (["job.log", "--timezone", "+99:00"], "a name such as Europe/Berlin"),
        (["job.log", "--year", "26"], "a whole number from 1970 to 9998"),
        (["job.log", "--flaps", "job.log"], "what `flapd flaps --json` prints would be right"),
        (["a\0b"], "cannot be read"),
        ([], "the following arguments are required: LOG"),
    ],
)
def test_wrong_use_is_told_with_what_would_be_right(
    words: list[str],
    right: str,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(log.parent)

    assert main(["analyze", *words]) == 2
    assert right in capsys.readouterr().err


def test_a_fifo_with_nobody_at_its_other_end_is_refused_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo(tmp_path / "pipe")

    assert main(["analyze", str(tmp_path / "pipe")]) == 2
    assert "is no regular file" in capsys.readouterr().err


@pytest.mark.parametrize("when", ["not a time", "2026-11-30T08:31:00", "9999-99-99T00:00:00Z"])
def test_a_list_of_flaps_with_impossible_times_is_wrong_input(
    when: str, log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    item = flap("08:31:00", "08:32:00", down={"earliest": when, "latest": when})

    status = main(["analyze", str(log), "--flaps", str(flaps_file(tmp_path, item))])

    assert status == 2
    assert "--flaps: " in capsys.readouterr().err


def test_words_of_a_newer_agent_do_no_harm(log: Path, tmp_path: Path, analyze: Analyze) -> None:
    item = flap("08:31:00", "08:32:00", cause="gremlins", seen="dreamt", kind="blip", status="odd")

    assert analyze(log, "--flaps", flaps_file(tmp_path, item))["incidents"]


def hostile(path: Path, count: int) -> Path:
    """So many errors, each of its own."""
    with path.open("w") as file:
        for number in range(count):
            second = number % 60
            file.write(
                f"[2026-11-30 08:{number // 60 % 60:02}:{second:02}] node01:7:1 [3] "
                "transport/net_ib.cc:1909 NCCL WARN NET/IB : Got completion from peer "
                f"10.0.{number % 200}.1<{number}> with status=12 opcode=0 len=0 vendor err 129\n"
            )
    return path


def test_the_earliest_of_too_many_faults_are_kept_and_the_others_counted(
    tmp_path: Path, analyze: Analyze
) -> None:
    found = analyze(hostile(tmp_path / "job.log", 2 * MOST_MESSAGES + 500))

    assert len(found["faults"]) == MOST_FAULTS
    assert found["faults_left_out"] == 2 * MOST_MESSAGES + 500 - MOST_FAULTS
    times = [one["time"] for one in found["faults"]]
    assert times == sorted(times)


def test_a_line_that_never_ends_does_not_fill_memory(tmp_path: Path) -> None:
    path = tmp_path / "job.log.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(64):
            file.write(b"x" * (1 << 20))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))

    done = subprocess.run(
        [sys.executable, "-m", "flapd", "analyze", str(path), "--json"],
        capture_output=True,
        check=False,
        timeout=300,
        preexec_fn=limited,
    )

    assert done.returncode == 1, done.stderr
    assert json.loads(done.stdout)["files"][0]["bytes"] == 64 << 20


def test_how_far_it_is_is_told_in_bytes_of_the_file(tmp_path: Path) -> None:
    packed = tmp_path / "job.log.gz"
    packed.write_bytes(gzip.compress(os.urandom(1 << 20)))
    told: list[int] = []

    read([str(packed), str(packed)], Zone(timezone.utc), told.append)

    assert told == sorted(told)
    assert told[-1] == 2 * packed.stat().st_size


@pytest.mark.parametrize("year", ["0001", "9999", "1969"])
def test_times_at_the_end_of_the_calendar_do_no_harm(
    year: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "job.log"
    edge = "01-01 00:00:00" if year == "0001" else "12-31 23:59:59"
    log.write_text(ERROR.replace("2026-11-30 08:31:31", f"{year}-{edge}") + "\n")

    for zone in ("+14:00", "-12:00"):
        assert main(["analyze", str(log), f"--timezone={zone}"]) == 0
        assert main(["analyze", str(log), f"--timezone={zone}", "--json"]) == 0
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("changed", [-(10**9), 0, 10**11])
def test_a_file_of_any_age_is_read(changed: int, tmp_path: Path, analyze: Analyze) -> None:
    log = tmp_path / "job.log"
    log.write_text(WATCHDOG + "\n")
    os.utime(log, (changed, changed))

    assert len(analyze(log)["faults"]) == 1


def test_lengths_beyond_all_reason_do_no_harm(log: Path, tmp_path: Path, analyze: Analyze) -> None:
    item = flap("08:31:00", "08:32:00", down_seconds={"min": -1e300, "max": 1e300})

    assert analyze(log, "--flaps", flaps_file(tmp_path, item))["incidents"]


def test_stdin_that_is_closed_is_wrong_input() -> None:
    code = "import os; os.close(0); from flapd.cli.main import main; exit(main(['analyze', '-']))"

    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)

    assert done.returncode == 2, done.stderr
    assert b"- cannot be read" in done.stderr


def test_a_file_that_is_missing_is_told_before_the_others_are_read(
    log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["analyze", str(log), str(log.with_name("missing"))]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "missing cannot be read" in captured.err
