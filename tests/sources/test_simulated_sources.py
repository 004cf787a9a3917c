"""On a simulated node the kernel speaks of other devices: its files alone are read, and that is
said of each source."""

import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from flapd.model.duration import parse_duration
from flapd.model.observation import Observation, Sample
from flapd.sources.kernel_sources import silent_sources
from flapd.sources.sampler_link import Orders
from flapd.sources.sampler_process import SamplerProcess
from flapd.sources.settings import PathsSettings, PortsSettings, SamplingSettings, SourcesSettings
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import two_ports
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

IN_THE_SAMPLER = {"rdma_netlink", "verbs", "ethtool", "kernel_log"}


def told_by(
    node: SimulatedNode, silent: Mapping[str, str]
) -> tuple[dict[str, dict[str, str]], list[Sample]]:
    """What a sampler with these sources tells of them, once it told that they were asked."""
    heard: list[Observation] = []
    ring = node.directory / "ring"
    ring.mkdir(exist_ok=True)
    sampling = SamplingSettings(interval=parse_duration("20ms"))
    orders = Orders(
        str(node.sysfs), str(ring), "boot1", sampling, PortsSettings(), silent=dict(silent)
    )
    sampler = SamplerProcess(orders, heard.extend)
    sampler.start()

    def is_settled() -> bool:
        sources = sampler.health.sources
        told = [how for those in sources.values() for how in those.values()]
        return len(sources) == 2 and not any("yet" in how for how in told)

    try:
        until(is_settled, "the sources of both devices")
        seen_ns = time.monotonic_ns()
        until(
            lambda: any(isinstance(it, Sample) and it.before_ns > seen_ns for it in heard[-50:]),
            "a sample after that",
        )
    finally:
        sampler.stop()
    return sampler.health.sources, [it for it in heard if isinstance(it, Sample)]


def test_all_sources_of_a_simulated_node_are_found_silent_and_say_why(tmp_path: Path) -> None:
    node = SimulatedNode(tmp_path)
    with simulated_fabric(node, two_ports(), origin_in_seconds=1000.0):
        silent = silent_sources(SourcesSettings(), PathsSettings(sysfs=str(node.sysfs)))
        sources, samples = told_by(node, silent)

    assert silent.keys() == set(SourcesSettings.__struct_fields__)
    for told in sources.values():
        assert told == {name: silent[name] for name in IN_THE_SAMPLER}
    assert {name for sample in samples for name in sample.values} >= {"state", "rate_mbps"}
    assert not any(name.startswith("ethtool/") for it in samples for name in it.values)


def test_where_nobody_found_that_out_each_device_and_netdev_is_found_a_stranger(
    tmp_path: Path,
) -> None:
    """As with the host's /sys in a container, whose network is its own."""
    node = SimulatedNode(tmp_path)
    with simulated_fabric(node, two_ports(), origin_in_seconds=1000.0):
        sources, samples = told_by(node, {"kernel_log": "not here"})

    for told in sources.values():
        assert "on" not in told.values()
        assert told.keys() >= IN_THE_SAMPLER
    assert {name for sample in samples for name in sample.values} >= {"state", "rate_mbps"}
    assert not any(name.startswith("ethtool/") for it in samples for name in it.values)
