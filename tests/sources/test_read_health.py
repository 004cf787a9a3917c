import msgspec
from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.pace import Swept
from flapd.sources.read_health import READ_SECONDS, Histogram, ReadHealth
from flapd.sources.read_meter import ReadMeter

SECONDS = st.floats(min_value=0, max_value=100)


@given(st.lists(SECONDS), st.lists(SECONDS))
def test_histograms_added_up_hold_what_one_would_have_held(
    some: list[float], others: list[float]
) -> None:
    first, second, whole = (Histogram.empty(READ_SECONDS) for _ in range(3))
    for seconds in some:
        first.observe(seconds)
        whole.observe(seconds)
    for seconds in others:
        second.observe(seconds)
        whole.observe(seconds)

    together = first.plus(second)

    assert together.counts == whole.counts
    assert abs(together.sum_seconds - whole.sum_seconds) < 1e-6


def test_a_duration_belongs_to_the_first_bucket_that_it_does_not_pass() -> None:
    histogram = Histogram.empty((0.1, 1.0))
    for seconds in (0.05, 0.1, 0.5, 1.5):
        histogram.observe(seconds)

    assert histogram.counts == [2, 1, 1]
    assert histogram.sum_seconds == 2.15


def test_what_was_told_adds_up_by_device_and_the_pace_is_as_told_last() -> None:
    health = ReadHealth()
    for slowed in (2, 1):
        delta = ReadHealth(slowed={"mlx5_0": slowed})
        delta.observe("mlx5_0", "fast", 0.00004)
        delta.failed("mlx5_0", "EINVAL", 3)
        delta.lateness.observe(0.002)
        health.add(delta)

    assert health.read_seconds["mlx5_0", "fast"].counts[0] == 2
    assert health.errors == {("mlx5_0", "EINVAL"): 6}
    assert sum(health.lateness.counts) == 2
    assert health.slowed == {"mlx5_0": 1}


def test_who_looks_at_it_is_not_disturbed_by_what_is_added() -> None:
    health = ReadHealth()
    delta = ReadHealth()
    delta.observe("mlx5_0", "fast", 0.1)
    health.add(delta)
    seen = health.read_seconds
    counts = list(seen["mlx5_0", "fast"].counts)

    delta.observe("mlx5_1", "fast", 0.1)
    health.add(delta)

    assert list(seen) == [("mlx5_0", "fast")]
    assert seen["mlx5_0", "fast"].counts == counts


def test_it_travels_as_it_is() -> None:
    health = ReadHealth(slowed={"mlx5_0": 2})
    health.observe("mlx5_0", "slow", 0.3)
    health.failed("mlx5_0", "EIO", 1)

    encoded = msgspec.msgpack.encode(health)

    assert msgspec.msgpack.decode(encoded, type=ReadHealth) == health


def test_a_meter_gives_what_it_noted_once() -> None:
    meter = ReadMeter()
    meter.note("mlx5_0", [Swept("fast", 10**8, 10**9, 40_000, 2_000_000)], {"EIO": 2})

    taken = meter.take()

    assert taken.read_seconds["mlx5_0", "fast"].counts[0] == 1
    assert taken.lateness.counts[1] == 1
    assert taken.errors == {("mlx5_0", "EIO"): 2}
    assert meter.take() == ReadHealth()


def test_what_could_not_be_told_is_told_with_what_came_after() -> None:
    meter = ReadMeter()
    meter.note("mlx5_0", [Swept("fast", 10**8, 10**9, 40_000)], {})
    taken = meter.take()
    meter.note("mlx5_0", [Swept("fast", 10**8, 10**9, 40_000)], {})

    meter.give_back(taken)

    assert meter.take().read_seconds["mlx5_0", "fast"].counts[0] == 2
