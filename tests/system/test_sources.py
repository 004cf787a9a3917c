"""On a simulated node the kernel speaks of other devices: its files alone are read, as is said."""

from pathlib import Path

import pytest

from flapd.sources.settings import SourcesSettings
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import two_ports
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]


def test_a_simulated_node_is_read_by_its_files_alone_and_each_other_source_says_why(
    tmp_path: Path,
) -> None:
    node = SimulatedNode(tmp_path)
    with simulated_fabric(node, two_ports(), origin_in_seconds=1000.0):
        node.start()
        try:
            until(node.is_ready, "a ready agent")
            ports = until(
                lambda: [
                    port
                    for port in node.get("/api/v1/ports")["items"]
                    if not any("yet" in how for how in port["sources"].values())
                ],
                "all sources of a port",
            )
            metrics = node.get_text("/metrics").splitlines()
        finally:
            node.terminate()

    kernels = set(SourcesSettings.__struct_fields__)
    for port in ports:
        assert port["readable"]
        assert kernels <= port["sources"].keys()
        assert {name for name, how in port["sources"].items() if how == "on"} == {"sysfs"}
        assert f"{node.sysfs} is not the running kernel's own" in port["sources"]["rtnetlink"]
    for name in kernels:
        assert f'flapd_source_up{{source="{name}"}} 0.0' in metrics
