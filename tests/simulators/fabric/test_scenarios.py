"""The scenarios that tests rely on are what they say."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulators.fabric.drivers import DRIVER_NAMES
from simulators.fabric.faults import fault_windows
from simulators.fabric.scenarios import SCENARIOS, all_drivers, bad_node, eight_ports
from simulators.fabric.spec import Spec
from simulators.fabric.tree import epochs, simulated_ports

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000


@settings(max_examples=25)
@given(st.integers())
def test_eight_ports_flap_for_20_seconds_within_their_bounds(seed: int) -> None:
    spec = eight_ports(seed)
    lengths_ns = []

    assert spec == eight_ports(seed)
    for port in spec.ports:
        flaps = port.schedule().flaps
        assert flaps
        assert flaps[-1].end_ns <= 20 * SECOND_NS
        lengths_ns += [flap.end_ns - flap.start_ns for flap in flaps]
        for before, flap in pairwise(flaps):
            assert flap.start_ns - before.end_ns >= 300 * MILLISECOND_NS
    assert min(lengths_ns) >= 4 * MILLISECOND_NS
    assert max(lengths_ns) <= 2400 * MILLISECOND_NS


def test_eight_ports_are_of_both_kinds_and_one_will_stop_counting() -> None:
    ports = eight_ports(1).ports

    assert [port.link_layer for port in ports] == ["InfiniBand"] * 4 + ["Ethernet"] * 4
    assert [port.device for port in ports if port.initial] == ["mlx5_3"]
    assert len(ports[3].schedule().flaps) > 2


def test_eight_ports_have_flaps_shorter_than_any_poll_and_longer_than_a_second() -> None:
    lengths_ns = [
        flap.end_ns - flap.start_ns
        for port in eight_ports(1).ports
        for flap in port.schedule().flaps
    ]

    assert min(lengths_ns) < 20 * MILLISECOND_NS
    assert max(lengths_ns) > SECOND_NS


def test_every_fault_of_the_bad_node_hits_a_file_of_one_device() -> None:
    spec = bad_node()
    trees = [epoch.tree for epoch in epochs(simulated_ports(spec, 0, 0))]

    for number, fault in enumerate(spec.faults):
        hit = fault_windows([fault], trees, 0)
        assert all(f"/infiniband/mlx5_{number}/" in path for path in hit)


def test_all_drivers_are_in_the_scenario_of_that_name() -> None:
    assert {port.driver for port in all_drivers().ports} == set(DRIVER_NAMES)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_survives_its_file(name: str) -> None:
    spec = SCENARIOS[name]()

    assert msgspec.json.decode(msgspec.json.encode(spec), type=Spec) == spec
