"""What an agent would have read of a node is what the job did there."""

import pickle

import pytest

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.core.job.dump import dump_of, standings
from flapd.model.event import Outage as ToldOutage
from flapd.model.observation import JobSeen, JobsPresent, Observation, Sample
from flapd.model.times import SECOND_NS
from simulators.job.found import dumps_of, environment_of, jobs_observed
from simulators.job.happenings import CodeHang, Outage, OutOfStep
from simulators.job.node import node_scenario
from simulators.job.observed import Watch, fabric_observed, moment_ns
from simulators.job.record import Run
from simulators.job.spec import Software
from simulators.job.words.speaker import Clock
from tests.simulators.job.jobs import run_of

ORIGIN_NS = 7_000 * SECOND_NS
UNIX_NS = 1_796_027_531 * SECOND_NS
XMIT = "counters/port_xmit_data"
LAYERS = ["InfiniBand", "Ethernet"]


def observed(run: Run, begin: float = 0.0) -> list[Observation]:
    watch = Watch(begin, run.truth.end, ORIGIN_NS, UNIX_NS - ORIGIN_NS, "boot1")
    return list(fabric_observed(node_scenario(run, 0), watch))


def samples(observations: list[Observation], port: int) -> list[Sample]:
    key = f"b83f:d203:0000:{port + 1:04x}/1"
    return [one for one in observations if isinstance(one, Sample) and one.key == key]


@pytest.mark.parametrize("layer", LAYERS)
def test_the_engine_finds_just_the_outages_of_this_node(layer: str) -> None:
    run = run_of(
        link_layer=layer,
        duration_seconds=200.0,
        happenings=(
            Outage(50.0, 2.0, port=1),
            Outage(80.0, 0.3, port=8),
            Outage(120.0, 3.0, node=1, port=1),
        ),
    )
    engine = Engine("node000", FlapSettings())
    events = [event for one in observed(run) for event in engine.step(one)]
    found = {event.id: event for event in events if isinstance(event, ToldOutage)}.values()

    assert [one.port for one in found] == ["mlx5_1/1", "mlx5_8/1"]
    for one, at in zip(found, (50.0, 80.0), strict=True):
        begin = ORIGIN_NS + round(at * SECOND_NS)
        assert one.down.earliest_ns <= begin <= one.down.latest_ns


@pytest.mark.parametrize("layer", LAYERS)
def test_a_port_has_sent_what_the_job_moved(layer: str) -> None:
    run = run_of(link_layer=layer, duration_seconds=100.0, happenings=(Outage(50.0, 2.0, port=1),))
    moved = sum(last - first for first, last in run.spans)

    for port in (0, 1, 7):
        values = [one.values[XMIT] for one in samples(observed(run), port) if XMIT in one.values]
        assert 4 * (values[-1] - values[0]) == pytest.approx(moved * 40e9, rel=0.02)


def test_all_ports_stand_still_while_one_is_missing() -> None:
    run = run_of(duration_seconds=100.0, happenings=(Outage(50.0, 5.0, port=1),))
    (symptom,) = run.truth.symptoms

    for port in range(8):
        for one in samples(observed(run), port):
            at = (one.before_ns - ORIGIN_NS) / SECOND_NS
            if symptom.begin + 0.3 < at < symptom.end:
                assert XMIT not in one.values


def test_observations_come_in_order_of_time() -> None:
    moments = [moment_ns(one) for one in observed(run_of(duration_seconds=60.0))]

    assert moments == sorted(moments)


def test_a_job_is_seen_from_its_start_to_its_end() -> None:
    run = run_of(
        duration_seconds=1500.0,
        restarts=1,
        restart_seconds=120.0,
        software=Software(watchdog_seconds=100.0),
        happenings=(CodeHang(100.0, 3),),
    )

    told = list(jobs_observed(run, 0, ORIGIN_NS, Clock(UNIX_NS), {}))

    found = [one.found for one in told if isinstance(one, JobSeen)]
    present = [one.jobs for one in told if isinstance(one, JobsPresent)]
    assert present == [("4711",), (), ("4711",)]
    assert [rank.rank for rank in found[0].ranks] == list(range(8))
    assert found[0].ranks[0].pid != found[1].ranks[0].pid
    assert found[0].ranks[0].started_unix_ns < found[1].ranks[0].started_unix_ns


def test_an_environment_says_what_its_launcher_sets() -> None:
    by_torchrun = environment_of(run_of(), 9)
    by_slurm = environment_of(run_of(software=Software(launcher="slurm")), 9)

    assert (by_torchrun["RANK"], by_torchrun["LOCAL_RANK"]) == ("9", "1")
    assert by_torchrun["TORCH_NCCL_ASYNC_ERROR_HANDLING"] == "1"
    assert "TORCHELASTIC_RUN_ID" not in by_slurm
    assert by_slurm["SLURM_NTASKS"] == "32"


def standing_of(run: Run) -> object:
    dumps = [
        (rank, dump_of(pickle.loads(content)))
        for _, rank, content in dumps_of(run, 0, Clock(UNIX_NS))
    ]
    (standing,) = standings(dumps)
    return standing


def test_dumps_name_the_rank_that_did_not_join() -> None:
    standing = standing_of(run_of(happenings=(CodeHang(100.0, 3),)))

    assert standing.missing == (3,)  # type: ignore[attr-defined]


def test_dumps_have_the_call_of_a_rank_out_of_step() -> None:
    run = run_of(happenings=(OutOfStep(100.0, 3),))

    calls = {
        rank: dump_of(pickle.loads(content)).entries[-4].profiling_name
        for _, rank, content in dumps_of(run, 0, Clock(UNIX_NS))
    }

    assert calls.pop(3) == "nccl:_all_gather_base"
    assert set(calls.values()) == {"nccl:all_reduce"}


def test_a_release_that_does_not_dump_leaves_none() -> None:
    run = run_of(software=Software(torch="2.4.0"), happenings=(CodeHang(100.0, 3),))

    assert list(dumps_of(run, 0, Clock(UNIX_NS))) == []
