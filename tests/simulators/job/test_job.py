"""What happens to a job is what its parts do: timers, watchdogs, launchers, checkpoints."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from simulators.job.happenings import (
    CodeHang,
    Died,
    Outage,
    OutOfStep,
    SlowLoader,
    WatchdogStuck,
)
from simulators.job.job import simulate
from simulators.job.spec import JobSpec, Pause, Phase, Software, Steps, Transport
from tests.core.cost.vectors import Vector, vectors
from tests.simulators.job.jobs import IN_FULL_FLOW, NOMINAL, run_of, the_symptom

TIMEOUTS = {"A": 20, "B": 18, "C": 17, "D": 22, "E": 20, "F": 22}


@pytest.mark.parametrize(
    "vector", [one for one in vectors() if one.policy in TIMEOUTS], ids=lambda v: v.policy + v.down
)
def test_nominal_timers_in_full_flow_do_what_the_tables_say(vector: Vector) -> None:
    run = run_of(
        steps=IN_FULL_FLOW,
        transport=replace(
            NOMINAL, ib_timeout=TIMEOUTS[vector.policy], adaptive=vector.policy in "EF"
        ),
        happenings=(Outage(200.0, float(vector.down)),),
    )

    symptom = the_symptom(run)

    if vector.regime == "b":
        assert symptom.kind == "stall"
        assert symptom.lost.stall == pytest.approx(float(vector.resume), abs=1e-6)
    else:
        assert symptom.kind == "error"
        assert symptom.lost.detect == pytest.approx(float(vector.budget), abs=0.2)


@pytest.mark.parametrize("watchdog", [600.0, 1800.0])
@pytest.mark.parametrize("down", [0.3, 60.0])
def test_a_transport_without_a_timeout_hangs_until_the_watchdog(
    watchdog: float, down: float
) -> None:
    run = run_of(
        steps=IN_FULL_FLOW,
        transport=replace(NOMINAL, ib_timeout=0),
        software=Software(watchdog_seconds=watchdog),
        happenings=(Outage(200.0, down),),
    )

    symptom = the_symptom(run)

    assert symptom.kind == "timeout"
    assert symptom.lost.detect == pytest.approx(watchdog + 0.05, abs=0.06)


def test_an_outage_of_one_port_stalls_every_rank_until_it_sends_again() -> None:
    run = run_of(
        nodes=128,
        steps=IN_FULL_FLOW,
        transport=replace(NOMINAL, ib_timeout=18),
        happenings=(Outage(100.0, 2.0, node=77, port=3),),
    )

    assert the_symptom(run).gpu_seconds == pytest.approx(2199.023, abs=0.001)
    assert not any(first < 102.1 and last > 100.0001 for first, last in run.spans)


def test_an_outage_while_all_compute_is_felt_by_nobody() -> None:
    steps = Steps(phases=(Phase(3.0, 1.0),), jitter=0.0)
    run = run_of(steps=steps, start_up_seconds=10.0, happenings=(Outage(10.5, 2.0),))

    assert run.truth.symptoms == ()
    assert run.truth.unfelt == (0,)


def test_an_outage_that_outlasts_the_computing_is_felt_from_the_next_exchange_on() -> None:
    steps = Steps(phases=(Phase(3.0, 1.0),), jitter=0.0)
    run = run_of(
        steps=steps,
        start_up_seconds=10.0,
        transport=replace(NOMINAL, ib_timeout=18),
        happenings=(Outage(10.5, 3.0),),
    )

    symptom = the_symptom(run)

    assert symptom.begin == pytest.approx(13.0)
    assert symptom.lost.stall == pytest.approx(1.073741824)


def test_an_outage_of_a_port_that_the_job_does_not_use_is_felt_by_nobody() -> None:
    run = run_of(steps=IN_FULL_FLOW, happenings=(Outage(100.0, 60.0, port=8),))

    assert run.truth.unfelt == (0,)


def test_a_second_port_that_goes_and_comes_back_within_a_stall_is_felt_by_nobody() -> None:
    run = run_of(
        steps=IN_FULL_FLOW,
        transport=NOMINAL,
        happenings=(Outage(100.0, 2.0), Outage(101.0, 2.0, node=2, port=5)),
    )

    assert the_symptom(run).happenings == (0,)
    assert run.truth.unfelt == (1,)


def test_a_second_port_that_is_still_missing_stalls_them_again() -> None:
    run = run_of(
        steps=IN_FULL_FLOW,
        transport=NOMINAL,
        happenings=(Outage(100.0, 2.0), Outage(101.0, 5.0, node=2, port=5)),
    )

    first, second = run.truth.symptoms

    assert (first.happenings, second.happenings) == ((0,), (1,))
    assert second.begin == first.end


def test_a_flap_at_the_moment_of_a_retry_costs_one_retry_more() -> None:
    tick = 4.294967296
    run = run_of(
        steps=IN_FULL_FLOW,
        transport=NOMINAL,
        happenings=(Outage(100.0, 1.0), Outage(104.0, 1.0)),
    )

    (symptom,) = run.truth.symptoms

    assert symptom.lost.stall == pytest.approx(2 * tick)


def test_an_address_that_changes_is_not_recovered_from() -> None:
    run = run_of(
        link_layer="Ethernet",
        steps=IN_FULL_FLOW,
        transport=replace(NOMINAL, ib_timeout=18),
        happenings=(Outage(100.0, 0.3, gid_changes=True),),
    )

    assert the_symptom(run).kind == "error"


@settings(max_examples=40)
@given(st.integers(0, 10_000))
def test_drawn_timers_stay_within_what_the_specification_promises(seed: int) -> None:
    tick = 4.096e-6 * 2**18
    run = run_of(
        seed=seed,
        steps=IN_FULL_FLOW,
        transport=Transport(ib_timeout=18),
        happenings=(Outage(100.0, 20.0),),
    )

    symptom = the_symptom(run)

    if symptom.kind == "stall":
        assert 20.0 <= symptom.lost.stall <= 20.0 + 4 * tick
    else:
        assert 7 * tick <= symptom.lost.detect <= 28 * tick + 0.2


def test_a_profile_of_adaptive_timers_may_end_far_below_the_formula() -> None:
    run = run_of(
        steps=IN_FULL_FLOW,
        transport=replace(NOMINAL, adaptive=True, adaptive_total_seconds=5.0),
        happenings=(Outage(100.0, 10.0),),
    )

    assert the_symptom(run).lost.detect == pytest.approx(5.0, abs=0.2)


def fatal(**software: object) -> JobSpec:
    return JobSpec(
        nodes=4,
        restarts=0,
        steps=IN_FULL_FLOW,
        transport=replace(NOMINAL, ib_timeout=18),
        software=Software(**software),  # type: ignore[arg-type]
        happenings=(Outage(100.0, 60.0),),
    )


def test_nccl_2_18_never_hands_the_error_on() -> None:
    symptom = the_symptom(simulate(fatal(nccl="2.18.1", torch="2.1.2")))

    assert symptom.kind == "timeout"
    assert symptom.lost.detect == pytest.approx(1800.5, abs=0.6)


def test_torch_2_8_waits_a_minute_before_it_aborts_and_2_4_does_not() -> None:
    new = the_symptom(simulate(fatal(nccl="2.27.3", torch="2.8.0")))
    old = the_symptom(simulate(fatal(nccl="2.20.5", torch="2.4.0")))

    assert 60.0 <= new.lost.propagation < 110.0
    assert old.lost.propagation < 50.0


def test_without_a_launcher_that_kills_others_stay_until_the_heartbeat() -> None:
    symptom = the_symptom(simulate(fatal(launcher="slurm")))

    assert 480.0 <= symptom.lost.propagation <= 500.0


def test_without_error_handling_only_people_end_it() -> None:
    symptom = the_symptom(simulate(fatal(error_handling=0)))

    assert symptom.kind == "nothing"
    assert symptom.told_at is None
    assert symptom.lost.seconds >= 7200


def test_a_hang_in_the_program_runs_into_the_watchdogs_of_the_others() -> None:
    run = run_of(happenings=(CodeHang(100.0, 13),))

    timeouts = {one.rank for one in run.messages if one.name == "watchdog_timeout"}

    assert the_symptom(run).kind == "timeout"
    assert timeouts == set(range(32)) - {13}


def test_ranks_out_of_step_all_run_into_the_watchdog() -> None:
    run = run_of(happenings=(OutOfStep(100.0, 13),))

    operations = {
        one.rank: one.values["op"] for one in run.messages if one.name == "watchdog_timeout"
    }

    assert len(operations) == 32
    assert [rank for rank, op in operations.items() if op != "ALLREDUCE"] == [13]


def test_a_stuck_watchdog_is_told_of_and_then_killed_by_its_heartbeat() -> None:
    run = run_of(software=Software(watchdog_seconds=1800.0), happenings=(WatchdogStuck(100.0, 13),))

    told = {one.name: one.at for one in run.messages if one.rank == 13}

    assert the_symptom(run).kind == "heartbeat"
    assert told["watchdog_stuck"] == pytest.approx(580.0)
    assert told["heartbeat_kill"] == pytest.approx(1060.0)


def test_whoever_sends_to_a_dead_process_gives_up_after_its_budget() -> None:
    run = run_of(
        transport=replace(NOMINAL, ib_timeout=18),
        software=Software(nccl="2.20.5", torch="2.4.0", launcher="slurm"),
        happenings=(Died(100.0, 8),),
    )

    errors = {one.rank for one in run.messages if one.name == "completion"}

    assert errors == {0, 16}
    assert the_symptom(run).kind == "death"


def test_a_late_batch_makes_all_wait() -> None:
    run = run_of(happenings=(SlowLoader(100.0, 3, late_seconds=20.0),))

    symptom = the_symptom(run)

    assert symptom.cause == "slow_loader"
    assert symptom.end - symptom.begin == pytest.approx(20.0)


def test_work_since_the_last_checkpoint_is_done_again() -> None:
    run = run_of(
        restarts=1,
        duration_seconds=3000.0,
        checkpoint=Pause(300.0, 10.0),
        happenings=(Died(1000.0, 3),),
    )

    symptom = the_symptom(run)
    saved = max(pause.end for pause in run.pauses if pause.end < 1000.0)

    assert symptom.lost.rework == pytest.approx(1000.0 - saved, abs=0.001)
    assert len(run.attempts) == 2
    numbers = [step.number for step in run.steps if step.begin >= symptom.end]
    assert numbers[0] == max(pause.step for pause in run.pauses if pause.end < 1000.0) + 1


happening = st.one_of(
    st.builds(
        Outage,
        st.floats(0.0, 3000.0),
        st.floats(0.001, 200.0),
        st.integers(0, 2),
        st.integers(0, 8),
        st.floats(0.0, 5.0),
    ),
    st.builds(SlowLoader, st.floats(0, 3000), st.integers(0, 23), late_seconds=st.floats(0.1, 60)),
    st.builds(CodeHang, st.floats(0, 3000), st.integers(0, 23)),
    st.builds(OutOfStep, st.floats(0, 3000), st.integers(0, 23)),
    st.builds(Died, st.floats(0, 3000), st.integers(0, 23)),
    st.builds(WatchdogStuck, st.floats(0, 3000), st.integers(0, 23)),
)
jobs = st.builds(
    JobSpec,
    seed=st.integers(0, 1000),
    nodes=st.just(3),
    duration_seconds=st.just(3000.0),
    restarts=st.integers(0, 3),
    transport=st.builds(
        Transport,
        ib_timeout=st.sampled_from([None, 14, 18, 20, 22, 0]),
        adaptive=st.booleans(),
        first_try_counts=st.booleans(),
    ),
    software=st.builds(
        Software,
        torch=st.sampled_from(["1.13.1", "2.2.0", "2.4.0", "2.7.0", "2.8.0"]),
        nccl=st.sampled_from(["2.14.3", "2.18.1", "2.27.3"]),
        launcher=st.sampled_from(["torchrun", "slurm", "slurm-kill-on-bad-exit"]),
        error_handling=st.sampled_from([None, None, 0]),
    ),
    checkpoint=st.sampled_from([None, Pause(400.0, 15.0)]),
    evaluation=st.sampled_from([None, Pause(700.0, 40.0)]),
    happenings=st.lists(happening, max_size=6).map(tuple),
)


@settings(max_examples=150)
@given(jobs)
def test_every_gpu_second_is_booked_in_one_place(spec: JobSpec) -> None:
    truth = simulate(spec).truth
    books = truth.books

    booked = sum(getattr(books, name) for name in books.__struct_fields__)
    lost = {
        name: sum(
            getattr(one.lost, name)
            for one in truth.symptoms
            if one.cause not in {"checkpoint", "evaluation", "slow_loader"}
        )
        for name in ("stall", "detect", "propagation", "restart", "rework")
    }

    assert booked == pytest.approx(24 * truth.end)
    assert all(getattr(books, name) >= 0 for name in books.__struct_fields__)
    for name, seconds in lost.items():
        assert getattr(books, name) == pytest.approx(24 * seconds, abs=1e-6)


@settings(max_examples=60)
@given(jobs)
def test_data_moves_forward_in_time_and_never_through_a_missing_port(spec: JobSpec) -> None:
    spans = simulate(spec).spans
    moments = [moment for span in spans for moment in span]

    assert moments == sorted(moments)
    for one in spec.happenings:
        if isinstance(one, Outage) and one.port < 8:
            assert not any(
                first < one.usable_at - 1e-6 and last > one.at_seconds + 1e-6
                for first, last in spans
            )


@settings(max_examples=30)
@given(jobs)
def test_the_same_spec_gives_the_same_run(spec: JobSpec) -> None:
    assert simulate(spec) == simulate(spec)


def test_a_day_of_a_thousand_ranks_is_told_whole() -> None:
    run = run_of(nodes=128, duration_seconds=86_400.0, checkpoint=Pause(1800.0, 20.0))

    assert run.truth.steps > 15_000
    assert len(run.pauses) >= 46
