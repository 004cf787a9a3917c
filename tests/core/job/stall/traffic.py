"""Step-locked traffic as a training job makes it, with whatever is to go wrong in it."""

import random
from collections.abc import Iterator, Sequence

from flapd.core.job.stall.watch import StallWatch
from flapd.model.stall import Slowdown, Stall
from flapd.model.times import SECOND_NS

RATE = 50e9
"""400 Gb/s."""
SAMPLE_NS = SECOND_NS // 10
PORTS = ("mlx5_0/1", "mlx5_1/1", "mlx5_2/1", "mlx5_3/1")


def bursts(
    until: float, *, period: float = 4.35, idle: float = 1.6, jitter: float = 0.05, seed: int = 1
) -> Iterator[tuple[float, float]]:
    """Begin and end of each burst, in seconds."""
    chance, now = random.Random(seed), 0.0
    while now < until:
        busy = (period - idle) * (1 + jitter * chance.uniform(-1, 1))
        yield now, now + busy
        now += busy + idle * (1 + jitter * chance.uniform(-1, 1))


def stalled(
    steps: Sequence[tuple[float, float]], stalls: Sequence[tuple[float, float]]
) -> list[tuple[float, float]]:
    """The bursts with all traffic held up at each (time, seconds), the rest as much later."""
    for at, length in sorted(stalls, reverse=True):
        later: list[tuple[float, float]] = []
        for begin, end in steps:
            if end <= at:
                later.append((begin, end))
            elif begin >= at:
                later.append((begin + length, end + length))
            else:
                later += [(begin, at), (at + length, end + length)]
        steps = later
    return list(steps)


def moved(steps: Sequence[tuple[float, float]], begin: float, end: float) -> float:
    """Seconds of traffic between two moments."""
    return sum(max(0.0, min(end, last) - max(begin, first)) for first, last in steps)


def run(
    watch: StallWatch,
    steps: Sequence[tuple[float, float]],
    until: float,
    *,
    speed: float = 0.8,
    ports: Sequence[str] = PORTS,
    begin: float = 0.0,
    totals: dict[str, float] | None = None,
    unread: Sequence[tuple[str, float, float]] = (),
    downs: Sequence[tuple[str, float]] = (),
) -> list[Stall | Slowdown]:
    """What the watch tells of these bursts; samples of the ports are 10 ms apart."""
    told: list[Stall | Slowdown] = []
    totals = {} if totals is None else totals
    totals.update({port: totals.get(port, 0.0) for port in ports})
    todo, place = sorted(downs, key=lambda one: one[1]), 0
    for tick in range(round(begin * 10), round(until * 10)):
        for number, port in enumerate(ports):
            now = tick / 10 + number / 100
            while place < len(steps) and steps[place][1] < now - 0.2:
                place += 1
            totals[port] += moved(steps[place : place + 4], now - 0.1, now) * speed * RATE
            if any(name == port and first <= now < last for name, first, last in unread):
                continue
            while todo and todo[0][1] <= now:
                name, at = todo.pop(0)
                told += watch.link_down(name, round((at - 0.1) * SECOND_NS), round(at * SECOND_NS))
            told += watch.sample(port, round(now * SECOND_NS), round(totals[port]))
    return told


def watch_of(*, training: bool = True, since: float = -3600.0) -> StallWatch:
    return StallWatch(
        "node01",
        "4711",
        dict.fromkeys(PORTS, RATE),
        training=training,
        since_ns=round(since * SECOND_NS),
    )


def closed(told: Sequence[Stall | Slowdown]) -> list[Stall]:
    return [one for one in told if isinstance(one, Stall) and one.end_ns is not None]
