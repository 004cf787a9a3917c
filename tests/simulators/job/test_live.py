"""A node of a simulated job as real processes, with a log and dumps that grow."""

import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from flapd.model.times import SECOND_NS
from simulators.fabric.spec import Spec
from simulators.job.happenings import CodeHang, Outage
from simulators.job.job import simulate
from simulators.job.live import LiveNode, live_node
from simulators.job.node import node_scenario
from simulators.job.spec import JobSpec, Phase, Software, Steps, Transport
from simulators.job.truth import JobTruth
from tests.system.harness import ROOT, SimulatedNode, simulated_fabric, until

SPEC = JobSpec(
    nodes=2,
    ranks_per_node=2,
    restarts=0,
    start_up_seconds=0.5,
    duration_seconds=30.0,
    steps=Steps(phases=(Phase(0.1, 0.1),), ahead_seconds=0.1),
    software=Software(torch="2.7.0", nccl="2.26.2", watchdog_seconds=1.0),
    happenings=(CodeHang(1.0, 1),),
)


def threads(pid: int) -> set[str]:
    return {path.read_text().strip() for path in Path(f"/proc/{pid}/task").glob("*/comm")}


def has_watchdogs(live: LiveNode) -> bool:
    return len(live.pids) == 2 and all(
        "pt_nccl_watchdg" in threads(pid) for pid in live.pids.values()
    )


def test_ranks_run_print_dump_and_are_gone(tmp_path: Path) -> None:
    run = simulate(SPEC)
    with live_node(run, 0, tmp_path, time.monotonic_ns()) as live:
        until(lambda: has_watchdogs(live), "the ranks")
        pids = dict(live.pids)
        block = Path(f"/proc/{pids[1]}/environ").read_bytes()
        until(lambda: b"Watchdog caught" in live.log.read_bytes(), "the watchdog's words")
        dump = live.dumps / "nccl_trace_rank_0"
        until(dump.exists, "the dump")

    assert b"RANK=1\0" in block
    assert b"WORLD_SIZE=4\0" in block
    assert b"[rank0]:" in live.log.read_bytes()
    assert b"[rank1]:[E" not in live.log.read_bytes().split(b"dump signal")[0]
    for pid in pids.values():
        assert not Path(f"/proc/{pid}").exists()


def test_the_command_writes_what_happens_and_the_ports_of_the_node(tmp_path: Path) -> None:
    spec, truth, scenario = (tmp_path / name for name in ("job.json", "truth.json", "node.json"))
    spec.write_bytes(msgspec.json.encode(SPEC))

    subprocess.run(
        [
            *(sys.executable, "-m", "simulators.job", "--spec", str(spec)),
            *("--truth", str(truth), "--scenario", str(scenario)),
        ],
        cwd=ROOT,
        check=True,
        timeout=60,
    )

    told = msgspec.json.decode(truth.read_bytes(), type=JobTruth)
    ports = msgspec.json.decode(scenario.read_bytes(), type=Spec).ports
    assert [one.cause for one in told.symptoms] == ["code_hang"]
    assert [port.device for port in ports] == ["mlx5_0", "mlx5_1", "mlx5_2"]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"{", "is not right"),
        (b'{"happenings": [{"kind": "died", "at_seconds": 1, "rank": 5000}]}', "not of this job"),
        (b'{"nodes": 1}', "`int` >= 2"),
    ],
)
def test_a_wrong_job_is_told_in_one_sentence(tmp_path: Path, content: bytes, sentence: str) -> None:
    (tmp_path / "job.json").write_bytes(content)

    ended = subprocess.run(
        [sys.executable, "-m", "simulators.job", "--spec", str(tmp_path / "job.json")],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert ended.returncode == 2
    assert sentence in ended.stderr
    assert "Traceback" not in ended.stderr


def test_the_mounted_ports_of_a_node_stand_still_with_the_job(tmp_path: Path) -> None:
    run = simulate(
        replace(
            SPEC,
            steps=Steps(phases=(Phase(0.0, 1000.0),)),
            transport=Transport(ib_timeout=17, spread=(1.0, 1.0)),
            happenings=(Outage(2.0, 1.0, port=1),),
        )
    )
    (symptom,) = run.truth.symptoms
    node = SimulatedNode(tmp_path)

    with simulated_fabric(node, node_scenario(run, 0), 0.0) as truth:
        counter = node.sysfs / "class/infiniband/mlx5_0/ports/1/counters/port_xmit_data"
        reads = []
        while (at := time.monotonic_ns() - truth.origin_monotonic_ns) < 5 * SECOND_NS:
            value = int(counter.read_text())
            reads.append((at, value, time.monotonic_ns() - truth.origin_monotonic_ns))

    def sent_within(first: float, last: float) -> int:
        """By reads that began and ended then."""
        within = (first * SECOND_NS, last * SECOND_NS)
        values = [value for at, value, end in reads if within[0] <= at and end <= within[1]]
        return max(values) - min(values)

    assert sent_within(1.0, 1.9) > 0
    assert sent_within(symptom.begin + 0.05, symptom.end - 0.05) == 0
    assert sent_within(symptom.end + 0.1, 4.9) > 0
