"""Cost: what the whole agent takes from the node, beside node_exporter on the same tree."""

import shutil
import socket
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from flapd.model.times import MILLISECOND_NS
from flapd.sources.discovery import devices_of, ports_of_device
from flapd.sources.plan import plan_of
from flapd.sources.settings import PortsSettings, SamplingSettings
from tests.bench.agent import pids, running_agent
from tests.bench.figure import Figure, Scale
from tests.bench.floor import measured_in_c
from tests.bench.machine import memory_directory, resident_bytes, usage_over, used_meanwhile
from tests.bench.reading import read_ns
from tests.system.harness import until

_PACKAGE = "prometheus-node-exporter"
_COLLECTORS = ("node_infiniband_", "node_network_")
_SETTLED_AFTER_SECONDS = 2.0
_MICROSECONDS = 1_000_000
_MEGABYTE = 1_000_000
_SAMPLING = SamplingSettings()


def whole_agent(scale: Scale) -> list[Figure]:
    with memory_directory() as directory, running_agent(directory, scale.ports) as node:
        agent, sampler = pids(node)
        time.sleep(min(_SETTLED_AFTER_SECONDS, scale.seconds))
        with used_meanwhile([sampler]) as of_sampler:
            usage = usage_over([agent, sampler], scale.seconds)
        resident = sum(map(resident_bytes, pids(node))) / _MEGABYTE
        whole = usage.cpu_seconds / usage.reads * _MICROSECONDS
        floor = _the_same_in_c(node.sysfs, directory, scale.seconds)
        reading = read_ns(node.sysfs, scale.sweeps)[0] / 1000
        theirs, why = _node_exporters(node.sysfs, scale)
    return [
        Figure(
            what=f"whole agent, {scale.ports} ports: of one core",
            unit="%",
            value=100 * usage.cpu_share,
            budget=4,
            floor=floor,
            note=f"sampler {100 * of_sampler[0].cpu_share:.1f} %, "
            f"{usage.reads / usage.seconds:.0f} values/s",
        ),
        Figure(what="both processes, resident", unit="MB", value=resident, budget=100),
        _beside_node_exporter("reading", reading, theirs, why, budget=0.25),
        _beside_node_exporter("all of flapd, at 10 Hz", whole, theirs, why, budget=None),
    ]


def _the_same_in_c(sysfs: Path, directory: Path, seconds: float) -> str:
    """A loop that wakes as often and reads as many files, and does nothing with them."""
    fast, others = [], []
    for device in devices_of(sysfs):
        for port in ports_of_device(sysfs, device, PortsSettings()):
            plan = plan_of(sysfs, port)
            fast += [str(plan.paths[name]) for name in plan.tiers["fast"]]
            others += [str(plan.paths[name]) for name in plan.tiers["slow"]]
    every = _SAMPLING.slow_interval.ns // _SAMPLING.interval.ns
    interval_ms = _SAMPLING.interval.ns // MILLISECOND_NS
    counts = [str(seconds), *map(str, (interval_ms, every, len(fast)))]
    try:
        share = measured_in_c("wake_loop", directory, [*counts, *fast, *others])
    except FileNotFoundError as error:
        return str(error)
    return f"C, the same wakes and reads {100 * share:.2f} %"


def _beside_node_exporter(
    what: str, ours: float, theirs: float | None, why: str, *, budget: float | None
) -> Figure:
    """Microseconds of CPU a value, ours and theirs.

    The budget is that of reading: all of flapd is held to its share of a core, and waking ten
    times a second for few values has no counterpart in an exporter.
    """
    return Figure(
        what=f"CPU a value beside node_exporter, {what}",
        unit="x",
        value=None if theirs is None else ours / theirs,
        budget=budget,
        floor="" if theirs is None else f"node_exporter {theirs:.1f} µs",
        note=why or f"{ours:.2g} µs a value",
    )


def _node_exporters(sysfs: Path, scale: Scale) -> tuple[float | None, str]:
    """Microseconds of CPU a value it exports from this tree; or None, and why not."""
    with ExitStack() as at_end:
        directory = Path(at_end.enter_context(tempfile.TemporaryDirectory()))
        program = _installed() or (_downloaded(directory) if scale.may_download else None)
        if program is None:
            return None, f"there is no {_PACKAGE} here"
        pid, url = at_end.enter_context(_exporter(program, sysfs))
        values = _scrape(url)
        if values is None or values == 0:
            return None, "node_exporter shows nothing of this tree"
        with used_meanwhile([pid]) as used:
            for _ in range(scale.requests):
                _scrape(url)
    return used[0].cpu_seconds / (scale.requests * values) * _MICROSECONDS, ""


def _installed() -> Path | None:
    names = ("prometheus-node-exporter", "node_exporter")
    return next((Path(found) for name in names if (found := shutil.which(name))), None)


def _downloaded(directory: Path) -> Path | None:
    """Out of Debian's package, which is not installed: that would start a service."""
    if shutil.which("apt-get") is None:
        return None
    command = ["apt-get", "-qq", "download", _PACKAGE]
    subprocess.run(command, cwd=directory, check=False, stderr=subprocess.DEVNULL)
    for package in directory.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, directory], check=True)
        return directory / "usr/bin/prometheus-node-exporter"
    return None


@contextmanager
def _exporter(program: Path, sysfs: Path) -> Iterator[tuple[int, str]]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    exporter = subprocess.Popen(
        [
            *(program, f"--web.listen-address={address}", f"--path.sysfs={sysfs}"),
            *("--collector.disable-defaults", "--collector.infiniband", "--collector.netclass"),
            "--web.disable-exporter-metrics",
        ],
        stderr=subprocess.DEVNULL,
    )
    url = f"http://{address}/metrics"
    try:
        until(lambda: _scrape(url) is not None, "node_exporter")
        yield exporter.pid, url
    finally:
        exporter.kill()
        exporter.wait()


def _scrape(url: str) -> int | None:
    """Values in the answer; None while there is none."""
    try:
        with urllib.request.urlopen(url, timeout=10) as answer:
            lines: list[str] = answer.read().decode().splitlines()
    except OSError:
        return None
    return sum(line.startswith(_COLLECTORS) for line in lines)
