"""Reading: one counter on a kept descriptor, beside the same in C."""

import os
import shutil
import time
from pathlib import Path

from flapd.sources.discovery import devices_of, ports_of_device
from flapd.sources.plan import Plan, plan_of
from flapd.sources.port_reader import PortReader
from flapd.sources.settings import PortsSettings
from tests.bench.agent import node_of
from tests.bench.figure import Figure, Scale
from tests.bench.floor import measured_in_c
from tests.bench.machine import memory_directory, reads
from tests.system.harness import SimulatedNode, simulated_fabric
from tests.trees import lay_out

_PORT = "class/infiniband/mlx5_0/ports/1"
_ONE_PORT = {
    "class/infiniband/mlx5_0/node_guid": "b83f:d203:0012:3450",
    f"{_PORT}/link_layer": "InfiniBand",
    f"{_PORT}/state": "4: ACTIVE",
    f"{_PORT}/phys_state": "5: LinkUp",
}
_REAL_COUNTERS = Path("/sys/class/net/lo/statistics")
_TIMES = 15


def reading(scale: Scale) -> list[Figure]:
    """On files of a RAM disk, where the kernel has least to do, and on counters of a real sysfs."""
    with memory_directory() as directory:
        node = SimulatedNode(directory)
        with simulated_fabric(node, node_of(1), 0.0, "--plain"):
            shutil.copytree(node.sysfs, directory / "still", symlinks=True)
        lay_out(directory / "real", _ONE_PORT)
        (directory / "real" / _PORT / "hw_counters").symlink_to(_REAL_COUNTERS)
        return [
            _beside_c("plain files", directory / "still", scale.sweeps),
            _beside_c("sysfs", directory / "real", scale.sweeps),
        ]


def _beside_c(where: str, sysfs: Path, sweeps: int) -> Figure:
    what, budget = f"reading a counter, beside C, on {where}", 2
    ours_ns, plan = read_ns(sysfs, sweeps)
    files = [str(plan.paths[name]) for name in plan.tiers["slow"]]
    rounds = str(sweeps // _TIMES)
    try:
        floor_ns = measured_in_c("pread_loop", sysfs.parent, [rounds, *files], _TIMES)
    except FileNotFoundError as error:
        return Figure(what=what, unit="x", value=None, budget=budget, note=str(error))
    return Figure(
        what=what,
        unit="x",
        value=ours_ns / floor_ns,
        budget=budget,
        floor=f"C {floor_ns:.0f} ns",
        note=f"{ours_ns:.0f} ns of CPU a read",
    )


def read_ns(sysfs: Path, sweeps: int) -> tuple[float, Plan]:
    """Nanoseconds of CPU a read of the first port, on the tier with most counters, and its plan."""
    (port,) = ports_of_device(sysfs, devices_of(sysfs)[0], PortsSettings())
    plan = plan_of(sysfs, port)
    reader = PortReader(port, plan)
    reader.sweep("slow")
    reader.sent()  # the first sweep reads more than those after it
    found = []
    for _ in range(_TIMES):
        read, began_ns = reads(os.getpid()), time.thread_time_ns()
        for _ in range(sweeps // _TIMES):
            reader.sweep("slow")
        took_ns = time.thread_time_ns() - began_ns
        found.append(took_ns / (reads(os.getpid()) - read))
    reader.close()
    return min(found), plan
