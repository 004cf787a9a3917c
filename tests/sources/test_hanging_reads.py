"""Reads that hang and fail as only a mounted tree can show them; the real sampler, real threads."""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from flapd.model.duration import parse_duration
from flapd.model.observation import READ_STATE, ReaderStuck, Sample
from flapd.model.times import SECOND_NS
from flapd.sources.discovery import ports_of_device
from flapd.sources.plan import plan_of
from flapd.sources.port_reader import PortReader
from flapd.sources.sampler_link import Orders, Told, make_link, receive, send
from flapd.sources.settings import PortsSettings, SamplingSettings
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import Fault, two_ports
from tests.system.harness import ROOT, SimulatedNode, simulated_fabric

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

PATIENCE_SECONDS = 20.0


@contextmanager
def sampler_on(node: SimulatedNode) -> Iterator[Callable[[Callable[[Told], bool]], list[Told]]]:
    """Gives a function that listens until something wanted is told, and returns all it heard."""
    link, theirs = make_link()
    process = subprocess.Popen(
        [sys.executable, "-m", "flapd.sources.sampler", "--link", str(theirs.fileno())],
        pass_fds=[theirs.fileno()],
        cwd=ROOT,
    )
    theirs.close()
    ring = node.directory / "ring"
    ring.mkdir(exist_ok=True)
    sampling = SamplingSettings(interval=parse_duration("20ms"))
    send(link, Orders(str(node.sysfs), str(ring), "boot1", sampling, PortsSettings()))

    def listen_until(is_wanted: Callable[[Told], bool]) -> list[Told]:
        heard: list[Told] = []
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not any(map(is_wanted, heard)):
            assert time.monotonic() < deadline, "it was never told"
            heard += receive(link, PATIENCE_SECONDS)
        return heard

    try:
        yield listen_until
    finally:
        link.close()
        process.kill()
        process.wait(PATIENCE_SECONDS)


def test_a_hanging_device_is_told_within_a_second_and_holds_up_no_other(tmp_path: Path) -> None:
    node = SimulatedNode(tmp_path)
    hang = Fault("*/mlx5_0/ports/1/state", "hang", begin_seconds=0.0, end_seconds=4.0)
    spec = msgspec.structs.replace(two_ports(), faults=(hang,))
    with (
        simulated_fabric(node, spec, origin_in_seconds=2.5) as truth,
        sampler_on(node) as listen_until,
    ):
        heard = listen_until(lambda told: isinstance(told, ReaderStuck))
        (stuck,) = [told for told in heard if isinstance(told, ReaderStuck)]
        heard += listen_until(lambda told: isinstance(told, ReaderStuck) and told.since_ns is None)

    assert stuck.device == "mlx5_0"
    assert stuck.since_ns is not None
    assert stuck.monotonic_ns - stuck.since_ns < SECOND_NS
    other = next(port.guid for port in truth.ports if port.device == "mlx5_1")
    begins = [
        told.before_ns
        for told in heard
        if isinstance(told, Sample) and told.key.startswith(other) and told.reads & ~READ_STATE
    ]
    gaps = [later - earlier for earlier, later in pairwise(begins)]
    assert max(gaps) < SECOND_NS
    assert begins[-1] - stuck.monotonic_ns > 2 * SECOND_NS


def test_a_device_registered_anew_is_told_although_the_agent_was_not_listening(
    tmp_path: Path,
) -> None:
    """What its old descriptor said must not be lost in what the new one says."""
    node = SimulatedNode(tmp_path)
    gone = Fault(
        "*/mlx5_0/ports/1/state", "errno", begin_seconds=0.0, end_seconds=0.3, error="ENODEV"
    )
    spec = msgspec.structs.replace(two_ports(), faults=(gone,))
    with simulated_fabric(node, spec, origin_in_seconds=0.5):
        (port,) = ports_of_device(node.sysfs, "mlx5_0", PortsSettings())
        reader = PortReader(port, plan_of(node.sysfs, port))
        reader.sample(reader.sweep("slow"))
        reader.sent()
        while "state" not in (unsent := reader.sample(reader.sweep("slow"))).errors:
            pass
        mended_ns = time.monotonic_ns() + SECOND_NS // 2
        while time.monotonic_ns() < mended_ns:
            unsent = reader.sample(reader.sweep("slow"))
        assert unsent.errors["state"] == "ENODEV"
        reader.sent()

        again = reader.sample(reader.sweep("slow"))
        reader.close()

    assert again.reads & READ_STATE
    assert again.values["state"] == 4
