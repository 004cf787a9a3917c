"""Stalls are found where traffic stood still, and nowhere else."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.core.job.stall.classify import Surroundings
from flapd.core.job.stall.record import WatchRecord
from flapd.core.job.stall.watch import StallWatch
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS
from tests.core.job.stall.traffic import PORTS, RATE, bursts, closed, run, stalled, watch_of

LEARN = 300.0


def begin(stall: Stall) -> float:
    return stall.begin_ns / SECOND_NS


def seconds(stall: Stall) -> float:
    assert stall.seconds is not None
    return stall.seconds


@settings(max_examples=15)
@given(st.floats(0.01, 1.0), st.booleans())
def test_a_constant_rate_never_stalls(speed: float, training: bool) -> None:
    assert run(watch_of(training=training), [(0.0, 1e9)], 200.0, speed=speed) == []


@settings(max_examples=10)
@given(
    period=st.floats(0.4, 12.0),
    share=st.floats(0.1, 0.6),
    jitter=st.floats(0.0, 0.08),
    seed=st.integers(0, 100),
)
def test_ordinary_steps_are_no_stalls(
    period: float, share: float, jitter: float, seed: int
) -> None:
    until = max(LEARN, 90 * period)
    steps = list(bursts(until, period=period, idle=share * period, jitter=jitter, seed=seed))

    told = run(watch_of(), steps, until)

    assert [one for one in told if isinstance(one, Stall)] == []


@settings(max_examples=15)
@given(
    at=st.floats(LEARN, LEARN + 10),
    length=st.floats(3.0, 20.0),
    seed=st.integers(0, 100),
)
def test_a_gap_in_step_locked_traffic_is_found_where_it_was(
    at: float, length: float, seed: int
) -> None:
    """Of any cause: the end of traffic before and its begin after it are its own."""
    steps = stalled(list(bursts(LEARN + 60, seed=seed)), [(at, length)])

    (found,) = closed(run(watch_of(), steps, LEARN + 60))

    last = max(end for _, end in steps if end <= at + 0.001)
    first = min(start for start, _ in steps if start >= at + length - 0.001)
    assert begin(found) == pytest.approx(last, abs=0.2)
    assert begin(found) + seconds(found) == pytest.approx(first, abs=0.2)
    assert found.stall_class == "unknown"
    assert sorted(found.ports) == sorted(PORTS)


def test_a_stall_is_told_while_it_lasts_and_again_at_its_end() -> None:
    steps = stalled(list(bursts(LEARN + 60)), [(LEARN, 10.0)])

    opened, ended = run(watch_of(), steps, LEARN + 60)

    assert isinstance(opened, Stall)
    assert isinstance(ended, Stall)
    assert (opened.id, opened.revision, opened.end_ns) == (ended.id, 0, None)
    assert ended.revision == 1
    assert ended.expected_seconds == pytest.approx(1.6, abs=0.2)


@settings(max_examples=20)
@given(into=st.floats(0.3, 2.3), length=st.floats(4.0, 6.0), seed=st.integers(0, 50))
def test_a_link_that_goes_down_in_full_flow_explains_what_follows(
    into: float, length: float, seed: int
) -> None:
    steps = list(bursts(LEARN + 60, seed=seed))
    at = next(start for start, _ in steps if start > LEARN) + into
    told = run(watch_of(), stalled(steps, [(at, length)]), LEARN + 60, downs=[("mlx5_1/1", at)])

    (found,) = closed(told)

    assert found.stall_class == "local_link"
    assert begin(found) == pytest.approx(at, abs=0.2)
    assert seconds(found) == pytest.approx(length, abs=0.3)
    assert found.expected_seconds == 0.0


def test_a_short_stall_is_found_if_the_link_went_down_with_it() -> None:
    steps = list(bursts(LEARN + 60))
    at = next(start for start, _ in steps if start > LEARN) + 1.0
    short = stalled(steps, [(at, 0.6)])

    (found,) = closed(run(watch_of(), short, LEARN + 60, downs=[("mlx5_1/1", at)]))

    assert found.stall_class == "local_link"
    assert seconds(found) == pytest.approx(0.6, abs=0.2)
    assert run(watch_of(), short, LEARN + 60) == []


def test_a_flap_in_an_ordinary_gap_that_holds_up_nothing_is_no_stall() -> None:
    steps = list(bursts(LEARN + 60))
    at = next(end for _, end in steps if end > LEARN) + 0.2

    assert run(watch_of(), steps, LEARN + 60, downs=[("mlx5_1/1", at)]) == []


def test_a_flap_in_a_gap_that_lasts_longer_for_it_begins_with_the_gap() -> None:
    steps = list(bursts(LEARN + 60))
    end = next(end for _, end in steps if end > LEARN)
    late = [(a, b) if a < end else (a + 3.0, b + 3.0) for a, b in steps]

    (found,) = closed(run(watch_of(), late, LEARN + 60, downs=[("mlx5_1/1", end + 0.5)]))

    assert found.stall_class == "local_link"
    assert begin(found) == pytest.approx(end, abs=0.2)
    assert found.expected_seconds == pytest.approx(1.6, abs=0.2)


def test_a_flap_that_the_traffic_survived_does_not_explain_a_later_pause() -> None:
    steps = list(bursts(LEARN + 60))
    start, end = next(one for one in steps if one[0] > LEARN)
    late = [(a, b) if a < end else (a + 10.0, b + 10.0) for a, b in steps]

    (found,) = closed(run(watch_of(), late, LEARN + 60, downs=[("mlx5_1/1", start + 0.3)]))

    assert found.stall_class == "unknown"


def test_a_flap_of_a_port_without_traffic_explains_nothing_and_hides_nothing() -> None:
    rates = {**dict.fromkeys(PORTS, RATE), "idle/1": RATE}
    steps = list(bursts(LEARN + 60))
    at = next(start for start, _ in steps if start > LEARN) + 1.0
    late = stalled(steps, [(at, 5.0)])

    def told(*downs: tuple[str, float]) -> str:
        watch = StallWatch("n", "j", rates, training=True, since_ns=-(10**13))
        (found,) = closed(run(watch, late, LEARN + 60, downs=downs))
        return found.stall_class

    assert told(("idle/1", at)) == "unknown"
    assert told(("mlx5_1/1", at), ("idle/1", at + 0.5)) == "local_link"


def test_only_training_jobs_are_watched() -> None:
    steps = stalled(list(bursts(LEARN + 60)), [(LEARN, 10.0)])

    assert run(watch_of(training=False), steps, LEARN + 60, downs=[("mlx5_1/1", LEARN)]) == []


def test_a_port_without_traffic_neither_makes_nor_prevents_a_stall() -> None:
    steps = stalled(list(bursts(LEARN + 60)), [(LEARN, 10.0)])
    watch = StallWatch("n", "j", {**dict.fromkeys(PORTS, RATE), "idle/1": RATE}, training=True,
                       since_ns=-(10**13))  # fmt: skip
    for tick in range(3600):
        watch.sample("idle/1", tick * SECOND_NS // 10, 0)

    (found,) = closed(run(watch, steps, LEARN + 60))

    assert "idle/1" not in found.ports


def test_what_is_not_read_is_not_taken_for_silent() -> None:
    steps = list(bursts(LEARN + 60))
    blind = [(port, LEARN, LEARN + 20) for port in PORTS]

    assert run(watch_of(), steps, LEARN + 60, unread=blind) == []


def test_one_port_that_is_not_read_does_not_hide_a_stall() -> None:
    steps = stalled(list(bursts(LEARN + 60)), [(LEARN, 12.0)])
    blind = [("mlx5_2/1", LEARN - 10, LEARN + 60)]

    (found,) = closed(run(watch_of(), steps, LEARN + 60, unread=blind))

    assert seconds(found) == pytest.approx(12.0, abs=2.0)


def test_a_counter_that_starts_anew_is_not_silence() -> None:
    watch = watch_of()
    run(watch, list(bursts(LEARN)), LEARN)
    told = run(watch, [(LEARN, LEARN + 5)], LEARN + 5, begin=LEARN)

    assert told == []


def test_a_job_with_a_new_rhythm_is_learned_anew() -> None:
    quick = list(bursts(LEARN))
    begin_slow = quick[-1][1] + 8.0
    slow = [(a + begin_slow, b + begin_slow) for a, b in bursts(LEARN, period=12.0, idle=8.0)]

    told = closed(run(watch_of(), [*quick, *slow], begin_slow + LEARN - 20))

    assert 1 <= len(told) <= 7
    assert begin(told[-1]) < begin_slow + 100


def test_regular_pauses_in_which_gpus_rest_are_planned() -> None:
    stops = [(LEARN + 120 * number, 20.0) for number in range(6)]
    steps = stalled(list(bursts(1200.0)), stops)
    watch = watch_of()
    watch.around(Surroundings(gpus_busy=False))

    told = closed(run(watch, steps, 1150.0))

    assert [one.stall_class for one in told] == ["this_node"] * 3 + ["checkpoint"] * 3
    assert told[-1].blind_to == ("storage_busy",)


def test_regular_pauses_of_which_nothing_else_is_known_stay_unknown() -> None:
    """A link elsewhere may flap once an hour."""
    stops = [(LEARN + 120 * number, 20.0) for number in range(6)]

    told = closed(run(watch_of(), stalled(list(bursts(1200.0)), stops), 1150.0))

    assert [one.stall_class for one in told] == ["unknown"] * 6
    assert "gpus_busy" in told[-1].blind_to


def test_what_else_is_seen_changes_the_class_of_an_open_stall() -> None:
    watch = watch_of()
    steps = [one for one in bursts(LEARN) if one[1] < LEARN - 5]
    run(watch, steps, LEARN + 10)

    (revised,) = watch.around(Surroundings(gpus_busy=True, processes=True))
    (ended,) = watch.end(round((LEARN + 10) * SECOND_NS))

    assert (revised.stall_class, revised.revision) == ("remote", 1)
    assert (ended.stall_class, ended.revision) == ("job_end", 3)


def test_a_link_event_that_comes_late_explains_an_open_stall() -> None:
    watch = watch_of()
    steps = [one for one in bursts(LEARN) if one[1] < LEARN - 5]
    end = steps[-1][1]
    run(watch, steps, LEARN + 10)

    (revised,) = watch.link_down("mlx5_0/1", round((end - 0.1) * SECOND_NS), round(end * SECOND_NS))

    assert revised.stall_class == "local_link"


def test_soon_after_its_start_a_job_that_falls_silent_is_starting_up() -> None:
    steps = stalled(list(bursts(290.0)), [(200.0, 20.0)])

    (found,) = closed(run(watch_of(since=-10.0), steps, 280.0))

    assert found.stall_class == "start_up"


@pytest.mark.parametrize("at", [LEARN - 1, LEARN + 1.5, LEARN + 4])
def test_a_watch_goes_on_from_what_another_knew(at: float) -> None:
    steps = stalled(list(bursts(LEARN + 60)), [(LEARN, 6.0)])
    expected = run(watch_of(), steps, LEARN + 60)
    first, totals = watch_of(), dict[str, float]()
    before = run(first, steps, at, totals=totals)
    record = msgspec.msgpack.decode(msgspec.msgpack.encode(first.record), type=WatchRecord)
    second = StallWatch(
        "node01",
        "4711",
        dict.fromkeys(PORTS, RATE),
        training=True,
        since_ns=-3600 * SECOND_NS,
        record=record,
    )

    after = run(second, steps, LEARN + 60, begin=at, totals=totals)

    assert before + after == expected


def test_the_period_is_that_of_the_steps() -> None:
    watch = watch_of()
    run(watch, list(bursts(LEARN)), LEARN)

    assert watch.period_ns is not None
    assert watch.period_ns / SECOND_NS == pytest.approx(4.35, abs=0.15)


def test_a_stream_without_steps_has_no_period() -> None:
    watch = watch_of()
    run(watch, [(0.0, 1e9)], LEARN)

    assert watch.period_ns is None


def test_a_port_whose_reading_hung_does_not_end_a_stall_that_others_see() -> None:
    """What it moved may have been before; the hang came with the stall."""
    at = 300.0
    steps = stalled([*bursts(at + 60.0)], [(at, 20.0)])
    hung = (PORTS[0], at - 0.35, at + 10.0)

    (stall,) = closed(run(watch_of(), steps, at + 60.0, unread=[hung]))

    assert abs(begin(stall) + seconds(stall) - (at + 20.0)) < 3
    assert stall.end_unseen_ns == 0
