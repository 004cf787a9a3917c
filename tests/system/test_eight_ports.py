"""Eight ports that flap at random, beside what really happened to them."""

import os
import random
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from flapd.model.times import SECOND_NS
from simulators.fabric.mount import fuse_missing
from simulators.fabric.scenarios import eight_ports
from simulators.fabric.truth import TrueOutage, Truth
from tests.system.harness import SimulatedNode, simulated_fabric, until
from tests.system.test_one_flap_end_to_end import outages_of

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

SEEDS = (1, 2, 3)
MORE_SEEDS = tuple(range(4, 21))
SATURATES = "mlx5_3/1"
KILLS = 20
BEGINS_AFTER_SECONDS = 5.0

Run = tuple[SimulatedNode, Truth, dict[str, Any], str]


def run(directory: Path, seed: int, disturb: Callable[[SimulatedNode, Truth], None]) -> Run:
    """The whole schedule of one seed: the node, what happened, and what it says of it."""
    directory.mkdir()
    node = SimulatedNode(directory)
    try:
        with simulated_fabric(node, eight_ports(seed), BEGINS_AFTER_SECONDS) as truth:
            node.start()
            until(node.is_ready, "a ready agent")
            disturb(node, truth)
            sleep_until(last_up_ns(truth) + SECOND_NS)
            until(node.is_ready, "a ready agent at the end")
            until(partial(is_over, node), "the end of every flap")
            ports = {item["port"]: item for item in node.get("/api/v1/ports")["items"]}
            metrics = node.get_text("/metrics")
            node.terminate()
    finally:
        with suppress(ProcessLookupError):
            node.kill()
    return node, truth, ports, metrics


def is_over(node: SimulatedNode) -> bool:
    """No flap takes any more downs."""
    flaps = node.get("/api/v1/flaps?limit=1000")["items"]
    return len(flaps) == sum(totals(node.get_text("/metrics"), "flapd_link_flaps_total"))


def last_up_ns(truth: Truth) -> int:
    return max(outage.up_monotonic_ns for outage in truth.outages)


def sleep_until(monotonic_ns: int) -> None:
    """Until the schedule of the simulated fabric has come to this moment."""
    time.sleep(max(0, monotonic_ns - time.monotonic_ns()) / SECOND_NS)


def undisturbed(_node: SimulatedNode, _truth: Truth) -> None: ...


def kill_times(truth: Truth, seed: int) -> Iterator[int]:
    """At random over the whole schedule, in order."""
    rng = random.Random(seed)
    first_ns = truth.outages[0].down_monotonic_ns
    yield from sorted(rng.randint(first_ns, last_up_ns(truth)) for _ in range(KILLS))


def kill_agent(node: SimulatedNode, truth: Truth) -> None:
    for at_ns in kill_times(truth, 11):
        sleep_until(at_ns)
        node.kill()
        node.start()


def kill_sampler(node: SimulatedNode, truth: Truth) -> None:
    for at_ns in kill_times(truth, 12):
        sleep_until(at_ns)
        with suppress(ProcessLookupError, FileNotFoundError):
            os.kill(node.sampler_pid(), signal.SIGKILL)


def check(node: SimulatedNode, truth: Truth, ports: dict[str, Any], metrics: str) -> None:
    found = outages_of(node)
    for port, shown in ports.items():
        true = [outage for outage in truth.outages if outage.port == port]
        flaps = [outage for outage in found if outage.port == port]
        counted = sum(flap.count for flap in flaps)
        assert all(flap.status == "closed" and flap.settled for flap in flaps)
        assert total(metrics, "flapd_link_downs_total", port) == counted
        assert total(metrics, "flapd_link_flaps_total", port) == len(flaps)
        if port == SATURATES:
            check_saturated(shown, counted, len(true), [flap.count_at_least for flap in flaps])
        else:
            assert shown["witness"]["status"] == "live"
            assert counted == len(true), port
            check_edges(flaps, true)


def check_saturated(shown: Any, counted: int, true: int, at_least: list[bool]) -> None:
    """It says that there may have been more, and claims none that was not."""
    assert shown["witness"]["status"] == "saturated"
    assert shown["saturated"] == ["link_downed"]
    assert 2 <= counted <= true
    assert any(at_least)
    assert counted == true or at_least[-1]


def check_edges(flaps: list[Any], true: list[TrueOutage]) -> None:
    """The n-th counted down is the n-th true one, and lies where it is said to be."""
    remaining = iter(true)
    for flap in sorted(flaps, key=lambda flap: flap.down.latest_ns):  # `earliest` may overlap
        downs = [next(remaining) for _ in range(flap.count)]
        assert flap.down.earliest_ns <= downs[0].down_monotonic_ns <= flap.down.latest_ns
        assert flap.up.earliest_ns <= downs[-1].up_monotonic_ns <= flap.up.latest_ns
        lasted_ns = sum(down.up_monotonic_ns - down.down_monotonic_ns for down in downs)
        assert flap.down_ns_min <= lasted_ns
        if flap.count == 1:
            assert lasted_ns <= flap.down_ns_max


def total(metrics: str, family: str, port: str) -> float:
    """Over all causes."""
    device, number = port.split("/")
    return sum(totals(metrics, family, f'device="{device}",port="{number}"'))


def totals(metrics: str, family: str, labels: str = "") -> list[float]:
    series = rf"^{family}\{{[^}}]*{labels}[^}}]*\}} (\S+)$"
    return [float(value) for value in re.findall(series, metrics, re.MULTILINE)]


def run_beside(directory: Path, *disturbed: tuple[int, Callable[..., None]]) -> list[Run]:
    """Several nodes at the same time: most of the time they wait."""
    with ThreadPoolExecutor(len(disturbed)) as pool:
        running = [
            pool.submit(run, directory / f"{seed}", seed, disturb) for seed, disturb in disturbed
        ]
        return [done.result() for done in running]


def test_every_physical_down_is_counted_and_every_true_edge_lies_in_its_interval(
    tmp_path: Path,
) -> None:
    for done in run_beside(tmp_path, *((seed, undisturbed) for seed in SEEDS)):
        check(*done)


def test_the_agent_or_the_sampler_killed_twenty_times_loses_and_doubles_nothing(
    tmp_path: Path,
) -> None:
    for done in run_beside(tmp_path, (4, kill_agent), (5, kill_sampler)):
        check(*done)


@pytest.mark.long
@pytest.mark.parametrize("seed", MORE_SEEDS)
def test_so_it_is_with_many_seeds(tmp_path: Path, seed: int) -> None:
    for done in run_beside(tmp_path, (seed, undisturbed), (seed + 100, kill_agent)):
        check(*done)
