"""How much of a step the fabric took."""

import pytest
from msgspec.structs import replace

from flapd.core.cost.durations import Length
from flapd.core.cost.inputs import Inputs
from flapd.core.cost.step import Training, step_times
from flapd.core.cost.step_fabric import (
    UNSEEN,
    Fabric,
    Flapped,
    Resent,
    Tellers,
    Waited,
    step_answer,
    waited,
)
from flapd.model.given import exactly
from flapd.model.loss import Range

TRAINING = Training(parameters=70e9, tokens_per_step=4_194_304, gpus=1024, peak_flops=989e12)
INPUTS = Inputs(
    gpus=exactly(1024, "option"),
    down_seconds=exactly(0.0, "option"),
    ib_timeout=exactly(20, "option"),
)
DAY = 86_400.0
MEASURED = 7.247725


HOUR = 3600.0


def hourly(seconds: float) -> list[Flapped]:
    return [Flapped(n * HOUR, Length(seconds, seconds)) for n in range(24)]


def fabric(**changes: object) -> Fabric:
    usual = Fabric(over_seconds=DAY, waited=waited(hourly(2.0), INPUTS))
    return replace(usual, **changes)


def test_flaps_that_are_waited_out_add_up() -> None:
    found = waited(hourly(2.0), INPUTS)

    assert (found.flaps, found.deaths) == (24, 0)
    assert found.seconds.likely == pytest.approx(24 * 4.294967296)
    assert found.seconds.low == pytest.approx(24 * 2.0)
    assert found.seconds.low <= found.seconds.likely <= found.seconds.high


def test_flaps_of_one_moment_hold_a_job_up_once() -> None:
    switch = [Flapped(at, Length(2.0, 2.0)) for at in (0.0, 0.0, 1.0)]

    found = waited(switch, INPUTS)

    assert found.flaps == 3
    assert found.seconds.low == pytest.approx(1.0 + 2.0)
    assert found.seconds.likely == pytest.approx(1.0 + 4.294967296)


def test_what_a_hub_does_not_hear_of_is_named_instead_of_other_nodes() -> None:
    of_hub = fabric(tellers=Tellers("4711", 128, 1024))

    for measured in (None, MEASURED):
        told = [one.what for one in step_answer(TRAINING, 0.40, measured, of_hub).unseen]
        assert "retransmissions" in told
        assert "links of other nodes" not in told


def test_flaps_that_kill_lengthen_no_step() -> None:
    found = waited([*hourly(2.0), Flapped(0.0, Length(60, 60))], INPUTS)

    assert (found.flaps, found.deaths) == (25, 1)
    assert found.seconds == waited(hourly(2.0), INPUTS).seconds


def test_what_is_not_known_well_counts_as_the_least() -> None:
    found = waited([Flapped(0.0, Length(0.0, 28_800.0))], INPUTS)

    assert found.seconds.likely == 0


def test_an_hourly_flap_of_two_seconds_explains_a_tenth_of_a_percent_of_a_step() -> None:
    found = step_answer(TRAINING, 0.40, MEASURED, fabric())

    assert found.projected_seconds == pytest.approx(4.348635, abs=1e-6)
    assert found.gap is not None
    assert found.gap.fabric_seconds == pytest.approx(MEASURED * 0.001193046, rel=1e-6)
    assert found.gap.unexplained_seconds == pytest.approx(
        found.gap.gap_seconds - found.gap.fabric_seconds
    )
    assert found.flaps_seconds is not None
    assert found.flaps_seconds.likely == pytest.approx(found.gap.fabric_seconds)


def test_what_traffic_showed_counts_before_the_model() -> None:
    seen = fabric(stalled_seconds={"local_link": 864.0, "remote": 86.4})

    found = step_answer(TRAINING, 0.40, MEASURED, seen)

    assert found.gap is not None
    assert found.gap.fabric_seconds == pytest.approx(MEASURED / 100)
    assert found.stalls_seconds == pytest.approx(
        {"local_link": MEASURED / 100, "remote": MEASURED / 1000}
    )


def test_no_stall_seen_of_a_link_is_nothing_explained() -> None:
    found = step_answer(TRAINING, 0.40, MEASURED, fabric(stalled_seconds={"remote": 86.4}))

    assert found.gap is not None
    assert found.gap.fabric_seconds == 0


def test_retransmissions_are_told_as_the_most_they_can_have_been() -> None:
    resent = Resent(900.0, {"ack_timeout": 2}, 2 * 4.294967296)

    found = step_answer(TRAINING, 0.40, MEASURED, fabric(resent=resent))

    assert found.retransmissions_seconds == pytest.approx(MEASURED * 8.589934592 / 900)
    many = fabric(resent=Resent(900.0, {"ack_timeout": 900}, 3865.0))
    assert step_answer(TRAINING, 0.40, MEASURED, many).retransmissions_seconds == MEASURED


def test_without_an_agent_the_gap_is_told_and_nothing_of_the_fabric() -> None:
    found = step_answer(TRAINING, 0.40, MEASURED, None)

    assert found.gap is not None
    assert found.gap.achieved_mfu == pytest.approx(0.24, abs=1e-4)
    assert (found.fabric, found.flaps_seconds, found.stalls_seconds) == (None, None, None)


def test_without_a_measured_time_there_is_no_gap() -> None:
    found = step_answer(TRAINING, 0.50, None, fabric())

    assert found.projected_seconds == pytest.approx(3.478908, abs=1e-6)
    assert found.gap is None


def test_what_cannot_be_seen_is_named_with_one_metric_each() -> None:
    told = step_answer(TRAINING, 0.40, MEASURED, None).unseen

    assert told == UNSEEN
    assert all(one.metric and one.reading for one in told)
    text = " ".join(one.metric for one in told)
    for metric in ("data-loader wait", "SM_ACTIVE", "TENSOR_ACTIVE", "DRAM_ACTIVE", "NCCL kernels"):
        assert metric in text


def test_the_spread_over_ranks_is_told_where_several_print_their_steps() -> None:
    found = step_times({"0": [4.0, 5.0], "7": [9.0, 8.0, 10.0]})

    assert found is not None
    assert (found.all.steps, found.all.min, found.all.median, found.all.max) == (5, 4, 8, 10)
    assert found.by_rank["7"].median == 9.0
    assert found.by_rank["0"].median == 4.5


def test_one_rank_alone_has_no_spread() -> None:
    found = step_times({"0": [4.0], "3": []})

    assert found is not None
    assert found.by_rank == {}
    assert step_times({}) is None


def test_nothing_that_flapped_is_nothing_waited_for() -> None:
    assert waited([], INPUTS) == Waited(0, 0, Range(0, 0, 0))
