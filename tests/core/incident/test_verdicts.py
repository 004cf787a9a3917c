"""Which flap did it, or that none did: one story after the other."""

from typing import Any

import pytest

from flapd.core.incident.evidence import Watched
from flapd.core.incident.incidents import incidents_of
from flapd.model.fault import Fault, FaultKind
from flapd.model.given import exactly
from flapd.model.incident import Incident
from flapd.model.standing import Standing
from tests.core.incident.parts import (
    DAY,
    PORTS,
    evidence,
    fault,
    job,
    ns,
    outage,
    policy,
    stall,
    timeout,
    transport_error,
)


def only(*items: Any, **known: Any) -> Incident:
    (found,) = incidents_of(evidence(*items, **known))
    return found


def verdicts(*items: Any) -> set[str]:
    return {one.verdict for one in incidents_of(evidence(*items))}


def test_a_stall_that_fits_a_short_flap_is_caused_by_it() -> None:
    found = only(job(), outage(7200, 2), stall(7200.1, 4.3))

    assert (found.verdict, found.regime) == ("caused", "absorbed")
    (cause,) = found.causes
    assert cause.flap == "flap-0-7200"
    assert round(cause.lag_seconds, 3) == 0.1
    assert cause.probability > 0.999


def test_the_same_flap_beside_a_watchdog_timeout_is_coincident() -> None:
    found = only(job(), outage(9402.9, 2), timeout(10000))

    assert (found.verdict, found.regime) == ("coincident", "watchdog")
    assert found.causes[0].probability < 0.5
    assert found.flap_gpu_seconds == {}


def test_a_flap_that_was_waited_out_is_told_apart_from_the_timeout_that_came_later() -> None:
    first, second = incidents_of(
        evidence(job(), outage(9402.9, 2), stall(9403, 4.3), timeout(10000))
    )

    assert (first.verdict, second.verdict) == ("caused", "coincident")
    assert list(first.flap_gpu_seconds) == ["flap-0-9402.9"]
    assert second.flap_gpu_seconds == {}
    assert second.causes[0].flap == "flap-0-9402.9"


def test_a_flap_longer_than_the_budget_explains_the_transport_error() -> None:
    found = only(job(), outage(5000, 60), transport_error(5030.9))

    assert (found.verdict, found.regime) == ("caused", "transport_abort")
    (cause,) = found.causes
    assert cause.rho is not None
    assert round(cause.rho, 4) == 1.0278
    assert cause.budget_seconds is not None
    assert round(cause.budget_seconds.likely, 6) == 30.064771


def test_a_flap_that_ends_with_the_watchdog_explains_it_where_errors_are_not_handed_on() -> None:
    silent = job(policy=policy(ib_timeout=18, coordinated=exactly(False, "version")))

    found = only(silent, outage(9395, 20), timeout(10000))

    assert (found.verdict, found.regime) == ("caused", "watchdog")


def test_a_changed_gid_kills_however_short_the_flap() -> None:
    changed = fault(
        "port_event", 9404, status=18, event="GID table change", hca="mlx5_0", port=1, primary=False
    )

    assert only(job(), outage(9402.9, 0.3), timeout(10000), changed).verdict == "caused"


def test_a_port_that_the_job_does_not_use_is_never_to_blame() -> None:
    uses_another = job(ports={"guid1/1": "queue_pair"})

    first, second = incidents_of(evidence(uses_another, outage(5000, 60), transport_error(5030.9)))

    assert (first.job, first.verdict) == (None, "no_job")
    assert (second.job, second.verdict, second.causes) == ("4711", "elsewhere", ())
    assert first.gpu_seconds is None


def test_ports_that_flap_all_the_time_prove_nothing() -> None:
    """One an hour on each of eight ports: chance alone puts one near anything."""
    noise = [
        outage(-3600 * hour + 440 * port, 0.3, port) for hour in range(24) for port in range(8)
    ]
    found = [
        one
        for one in incidents_of(evidence(job(), *noise, outage(5000, 60), transport_error(5075.0)))
        if one.symptoms
    ]

    assert [one.verdict for one in found] == ["likely"]
    assert found[0].causes[0].chance > 0.05


def test_clean_ports_say_that_it_was_elsewhere() -> None:
    found = only(job(), stall(100, 30, stall_class="remote"))

    assert (found.verdict, found.causes) == ("elsewhere", ())
    assert "ports of the job's other nodes" in found.blind_to


def test_a_job_that_is_all_here_on_clean_ports_was_not_hurt_by_the_fabric() -> None:
    alone = job(world_size=exactly(8, "environment"))

    assert only(alone, timeout(10000)).verdict == "not_fabric"


@pytest.mark.parametrize(
    "watched",
    [
        {},
        dict.fromkeys(PORTS, Watched(ns(-DAY), ns(9000))),
        dict.fromkeys(PORTS, Watched(ns(9405), ns(DAY))),
    ],
    ids=["never read", "stuck since before", "watched only since"],
)
def test_ports_that_could_not_be_read_tell_nothing(watched: dict[str, Watched]) -> None:
    found = only(job(), timeout(10000), watched=watched)

    assert found.verdict == "unknown"
    assert any(one.startswith("downs of mlx5_0/1") for one in found.blind_to)


def test_one_port_that_could_not_be_read_is_enough_not_to_know() -> None:
    seven = {key: Watched(ns(-DAY), ns(DAY)) for key in PORTS if key != "guid3/1"}

    found = only(job(), timeout(10000), watched=seven)

    assert found.verdict == "unknown"
    assert "downs of mlx5_3/1" in found.blind_to


@pytest.mark.parametrize(
    ("kind", "known"),
    [
        ("heartbeat", {"timeout_seconds": 480.0}),
        ("process_death", {"event": "SIGKILL", "status": -9}),
        ("transport_error", {"status": 4}),
        ("transport_error", {"status": 10}),
        ("fatal_event", {"hca": "mlx5_0", "event": "local catastrophic error"}),
    ],
)
def test_what_shows_another_cause_is_not_the_fabric(kind: FaultKind, known: Any) -> None:
    assert only(job(), fault(kind, 1000, **known)).verdict == "not_fabric"


def test_an_error_while_a_job_connects_is_not_the_fabric_unless_a_port_went_down() -> None:
    young = job(since_unix_ns=ns(990))

    assert only(young, transport_error(1000)).verdict == "not_fabric"
    assert only(young, outage(968, 60), transport_error(1000)).verdict == "caused"


@pytest.mark.parametrize("goes_on", [None, 2000.0])
@pytest.mark.parametrize("error", [transport_error(1000), fault("nccl_error", 1000)])
def test_a_job_started_while_a_port_was_down_may_have_failed_for_want_of_it(
    goes_on: float | None, error: Fault
) -> None:
    young = job(since_unix_ns=ns(990), ports={})

    found = only(young, outage(100, goes_on), error)

    assert found.verdict == "likely"
    assert [(one.port, one.rho) for one in found.causes] == [("mlx5_0/1", None)]
    assert found.causes[0].lag_seconds == pytest.approx(900, abs=2)
    said = " ".join(found.explanation)
    assert "10.0 s after the job was started, when mlx5_0/1 had been down for 14 min 50 s" in said
    assert "Start the job on other nodes, or once mlx5_0/1 is up again." in found.advice
    assert found.parts is not None
    assert found.parts.detect == pytest.approx(10)


def test_a_port_that_was_back_before_a_job_was_started_did_not_keep_it_from_starting() -> None:
    young = job(since_unix_ns=ns(990), ports={})

    assert verdicts(young, outage(100, 880), transport_error(1000)) == {"not_fabric"}


def test_a_port_that_the_job_never_used_did_not_keep_it_from_starting() -> None:
    young = job(since_unix_ns=ns(990), ports={"guid1/1": "log"})

    assert "likely" not in verdicts(young, outage(100, None), transport_error(1000))


def test_a_job_that_has_long_started_does_not_fail_for_a_port_it_did_without() -> None:
    old = job(since_unix_ns=ns(990), ports={})

    assert "likely" not in verdicts(old, outage(100, None), transport_error(2000))


def test_a_node_whose_gpus_were_idle_was_late_itself() -> None:
    assert only(job(), stall(100, 30, stall_class="this_node")).verdict == "not_fabric"


def standing(missing: tuple[int, ...], states: dict[int, str]) -> Standing:
    return Standing(
        group="0",
        description="default_pg",
        ranks=(0, 1, 2, 3),
        seq=116,
        op="nccl:all_reduce",
        created_ns=ns(9400),
        timeout_seconds=600.0,
        states=states,
        missing=missing,
        last_completed={},
        silent=(),
    )


def test_ranks_that_never_came_and_wait_nowhere_were_held_up_by_something_else() -> None:
    missing = standing((2,), {0: "started", 1: "started"})

    found = only(job(), timeout(10000), standings={"4711": (missing,)})

    assert found.verdict == "not_fabric"
    assert any("rank 2 never came" in sentence for sentence in found.explanation)


def test_ranks_that_wait_in_another_group_may_be_held_up_by_the_fabric() -> None:
    missing = standing((2,), {0: "started", 1: "started"})
    there = standing((), {2: "started", 3: "started"})

    found = only(job(), timeout(10000), standings={"4711": (missing, there)})

    assert found.verdict == "elsewhere"


def test_ranks_at_one_number_with_different_operations_are_a_fault_of_the_code() -> None:
    found = only(
        job(),
        timeout(10000, seq=116, op="ALLREDUCE", process_group="0", rank=1),
        timeout(10000.3, seq=116, op="BROADCAST", process_group="0", rank=2, primary=False),
    )

    assert found.verdict == "not_fabric"


def test_a_long_flap_does_not_outweigh_ranks_that_never_came() -> None:
    missing = standing((2,), {0: "started", 1: "started"})

    found = only(job(), outage(9395, 60), timeout(10000), standings={"4711": (missing,)})

    assert found.verdict == "not_fabric"
    assert found.causes[0].probability < 0.5


def test_a_flap_that_traffic_outlived_cost_nothing_visible() -> None:
    found = only(job(), outage(100, 0.3))

    assert (found.verdict, found.regime) == ("coincident", "hidden")


def test_where_nobody_would_have_seen_a_stall_a_flap_is_not_said_to_have_cost_nothing() -> None:
    found = only(job(stalls_seen_since_unix_ns=None), outage(100, 2))

    assert found.verdict == "unknown"
    assert any("traffic" in one for one in found.blind_to)


def test_a_flap_where_no_job_ran_is_no_incident() -> None:
    assert incidents_of(evidence(outage(100, 2))) == []


@pytest.mark.parametrize("stall_class", ["checkpoint", "evaluation", "start_up", "job_end"])
def test_ordinary_pauses_are_no_incidents(stall_class: str) -> None:
    assert incidents_of(evidence(job(), stall(100, 30, stall_class=stall_class))) == []


def test_what_follows_from_an_error_is_told_with_it() -> None:
    found = only(
        job(),
        outage(5000, 60),
        transport_error(5030.9),
        fault("transport_error", 5031, status=5, primary=False, consequence=True),
        fault("process_death", 5092, primary=False),
        timeout(5600, ran=590, primary=False, rank=700),
    )

    assert found.symptoms == (
        "fault-transport_error-5030.9",
        "fault-transport_error-5031",
        "fault-process_death-5092",
        "fault-watchdog_timeout-5600",
    )


def test_an_error_of_a_job_that_is_not_known_is_held_against_all_ports() -> None:
    found = only(outage(5000, 60), transport_error(5030.9, job=None))

    assert (found.verdict, found.job, found.gpu_seconds) == ("caused", None, None)


def test_ports_that_went_down_together_did_it_together() -> None:
    found = only(job(), *(outage(7200, 2, port) for port in range(8)), stall(7200.1, 4.3))

    assert found.verdict == "caused"
    assert {round(one.probability, 3) for one in found.causes} == {0.125}
    assert sum(one.probability for one in found.causes) <= 1


def test_many_short_flaps_at_once_are_no_better_proof_than_one() -> None:
    """A switch that restarts takes all ports down; that is one flap of the path."""
    found = only(job(), *(outage(9402.9, 2, port) for port in range(8)), timeout(10000))

    assert found.verdict == "coincident"


def test_an_open_outage_longer_than_the_budget_explains_the_error() -> None:
    found = only(job(), outage(5000, None), transport_error(5030.9), now_ns=ns(5031.5))

    assert found.verdict == "caused"
    assert found.open


def test_an_error_while_a_job_stood_still_for_another_reason_is_not_the_flap_s() -> None:
    """Its window would allow it; the traffic had stopped before the port went down."""
    found = only(job(), outage(9406, 60), stall(9400, 640, stall_class="remote"), timeout(10000))

    assert found.verdict == "coincident"


def test_what_is_too_short_to_kill_proves_nothing_however_near_it_stands() -> None:
    found = only(job(), outage(100, 2), stall(100.1, None), now_ns=ns(750))

    assert found.causes[0].probability > 0.5
    assert found.verdict == "coincident"


def test_a_stall_that_outlasts_the_flap_by_far_is_not_said_to_be_caused_by_it() -> None:
    found = only(job(), outage(100, 2), stall(100.1, 90))

    assert found.verdict == "coincident"


def test_a_flap_in_a_pause_that_does_not_fit_the_end_well_is_only_likely() -> None:
    """Timers may take four times their time; cut off in full flow that is doubt enough."""
    in_full_flow = only(job(), outage(7200, 2), stall(7200.1, 13))
    in_a_pause = only(job(), outage(7200, 2), stall(7199.5, 13.6, expected_seconds=0.9))

    assert (in_full_flow.verdict, in_a_pause.verdict) == ("caused", "likely")


def test_an_account_is_told_in_order_of_time_and_names_who_says_so() -> None:
    found = only(job(), outage(5000, 60), transport_error(5030.9))
    told = " ".join(found.explanation)

    assert "mlx5_0/1 went down and was back after 60.0 s" in found.explanation[0]
    assert "the transport gave up on rank 3 (status 12)" in found.explanation[1]
    assert "NCCL_IB_TIMEOUT 20 (its environment)" in told
    assert "1.03 times the retry budget" in told
    assert any("NCCL_IB_TIMEOUT=22" in one for one in found.advice)
    assert not any("drain" in one.lower() for one in found.advice)


def test_a_port_that_flaps_all_day_beside_other_symptoms_is_told_with_its_chance() -> None:
    flaps = [outage(-3600 * hour, 0.3) for hour in range(1, 8)]
    others = [stall(-3600 * hour - 1700, 5, stall_class="remote") for hour in range(1, 8)]
    found = incidents_of(
        evidence(job(), *flaps, *others, outage(7200, 2), stall(7200.1, 4.3), now_ns=ns(9000))
    )

    (last,) = [one for one in found if one.begin_unix_ns == ns(7200)]
    (said,) = [one for one in last.explanation if "within a day" in one]
    assert said.startswith("mlx5_0/1 flapped 8 times within a day, 1 of them with something")
    share = float(said.partition("probability of ")[2].partition(" %")[0])
    assert 1 < share < 10


def test_a_port_that_hardly_flapped_says_nothing_of_repeats() -> None:
    found = only(job(), outage(7200, 2), stall(7200.1, 4.3))

    assert not any("within a day" in one for one in found.explanation)


def test_queue_pairs_in_error_are_told_with_what_broke_them_and_prove_nothing() -> None:
    pairs = fault(
        "counter", 5070, form="queue_pair_error", primary=False, hca="mlx5_0", port=1, repeats=3
    )
    found = only(job(), outage(5000, 60), transport_error(5030.9), pairs)
    without = only(job(), outage(5000, 60), transport_error(5030.9))

    assert "In error at the next look: 3 queue pairs of mlx5_0/1." in found.explanation
    assert pairs.id in found.symptoms
    assert found.causes == without.causes


def test_a_counter_tells_of_the_job_that_used_its_port_then() -> None:
    earlier = job("4710", until_unix_ns=ns(900))
    counted = fault("counter", 1000, job=None, hca="mlx5_0", port=1)
    later = job("4711", since_unix_ns=ns(950), stalls_seen_since_unix_ns=None)
    soon = fault("counter", 930, job=None, hca="mlx5_0", port=1)

    assert [one.job for one in incidents_of(evidence(earlier, later, counted))] == ["4711"]
    assert [one.job for one in incidents_of(evidence(earlier, later, soon))] == ["4710"]
