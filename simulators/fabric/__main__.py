"""`python -m simulators.fabric`: serves a scenario until it is told to end."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.capture import read_capture
from simulators.fabric.changes import ALWAYS_NS
from simulators.fabric.faults import Windows, fault_windows
from simulators.fabric.mount import mounted
from simulators.fabric.operations import Operations
from simulators.fabric.plain import written
from simulators.fabric.scenarios import SCENARIOS
from simulators.fabric.schedule import nanoseconds
from simulators.fabric.spec import Spec, read_spec
from simulators.fabric.tree import Epoch, epochs, simulated_ports
from simulators.fabric.truth import Truth, boot_id, truth_of, write_truth

_WRONG_USE = 2

_DESCRIPTION = """\
Serves the /sys of a node that does not exist: RDMA devices of any driver, whose links flap,
whose files fail and which come and go, all at the moments a scenario names.

Where each file's content comes from a schedule, and what happened when is known to the
nanosecond: --truth is written when DIR can be read, and `ready DIR` is printed then.
"""

_EPILOG = f"""\
A scenario is JSON. The smallest one is a port that is down from 2 s on, for half a second:

  {{"ports": [{{"device": "mlx5_0", "link_layer": "InfiniBand", "netdev": "ib0",
              "guid": "b83f:d203:0012:3450", "pci": "0000:3b:00.0",
              "flaps": [{{"start_seconds": 2, "down_seconds": 0.5}}]}}]}}

--show NAME prints one to begin with: {", ".join(SCENARIOS)}.
What else may be said of ports, `faults` and `changes` is told in simulators/fabric/spec.py,
schedule.py, counters.py and changes.py.
"""


@dataclass(frozen=True)
class _Arguments:
    spec: Path | None
    capture: Path | None
    show: str | None
    mount: Path | None
    truth: Path | None
    origin_in: float
    origin_ns: int | None
    plain: bool
    until_eof: bool


@dataclass(frozen=True)
class _Scene:
    """What is served, and what is true of it."""

    trees: tuple[Epoch, ...]
    windows: Windows
    edges_ns: tuple[int, ...]
    truth: Truth


def main() -> int:
    """0 when told to end, 2 with a sentence on stderr where it cannot begin."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    arguments = _arguments()
    try:
        if arguments.show is not None:
            print(msgspec.json.format(msgspec.json.encode(SCENARIOS[arguments.show]())).decode())
        else:
            _serve(arguments, ended)
    except SimulatorError as error:
        print(error, file=sys.stderr)
        return _WRONG_USE
    return 0


def _arguments() -> _Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m simulators.fabric",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    served = parser.add_mutually_exclusive_group(required=True)
    # Absolute, since libfuse changes the working directory to / even in the foreground.
    served.add_argument("--spec", type=_absolute, metavar="FILE", help="the scenario, JSON")
    served.add_argument(
        "--capture", type=_absolute, metavar="FILE", help="a bundle of `flapd capture`, as it was"
    )
    served.add_argument("--show", choices=SCENARIOS, metavar="NAME", help="print a scenario")
    add = parser.add_argument
    add("--mount", type=_absolute, metavar="DIR", help="an empty or a new directory")
    add("--truth", type=_absolute, metavar="FILE", help="what happens when; written when ready")
    add(
        "--origin-in",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="the schedule's second 0 is so long after the start (default 0)",
    )
    add("--origin-ns", type=int, metavar="NS", help="its monotonic time, in place of --origin-in")
    add("--plain", action="store_true", help="ordinary files, no FUSE: no faults, no changes")
    add("--until-eof", action="store_true", help="end also when stdin ends")
    arguments = _Arguments(**vars(parser.parse_args()))
    if arguments.show is None and None in (arguments.mount, arguments.truth):
        parser.error("--mount and --truth are needed")
    return arguments


def _absolute(text: str) -> Path:
    return Path(text).absolute()


def _serve(arguments: _Arguments, ended: threading.Event) -> None:
    assert arguments.mount is not None
    assert arguments.truth is not None
    scene = _scene(arguments)
    _make_empty(arguments.mount)
    if arguments.until_eof:
        threading.Thread(target=_end_with_stdin, args=(ended,), daemon=True).start()
    with _served(scene, arguments.mount, ended, plain=arguments.plain):
        write_truth(scene.truth, arguments.truth)
        print(f"ready {arguments.mount}", flush=True)
        ended.wait()


def _scene(arguments: _Arguments) -> _Scene:
    begin_ns = time.monotonic_ns()
    origin_ns = arguments.origin_ns or begin_ns + nanoseconds(arguments.origin_in)
    unix_offset_ns = time.time_ns() - time.monotonic_ns()
    if arguments.capture is not None:
        tree, windows = read_capture(arguments.capture)
        truth = Truth(origin_ns, origin_ns + unix_offset_ns, boot_id())
        return _Scene((Epoch(ALWAYS_NS, tree),), windows, (), truth)
    assert arguments.spec is not None
    spec = read_spec(arguments.spec)
    return _scene_of(spec, origin_ns, begin_ns, unix_offset_ns)


def _scene_of(spec: Spec, origin_ns: int, begin_ns: int, unix_offset_ns: int) -> _Scene:
    ports = simulated_ports(spec, origin_ns, begin_ns)
    trees = epochs(ports)
    windows = fault_windows(spec.faults, (epoch.tree for epoch in trees), origin_ns)
    timelines = [
        timeline
        for port in ports
        for timeline in (port.timeline, *(m.timeline for m in port.members))
    ]
    edges_ns = tuple(edge for timeline in timelines for edge in timeline.edges_ns())
    return _Scene(
        trees, windows, edges_ns, truth_of(spec, ports, origin_ns, unix_offset_ns, boot_id())
    )


@contextmanager
def _served(
    scene: _Scene, directory: Path, ended: threading.Event, *, plain: bool
) -> Iterator[None]:
    if not plain:
        with mounted(Operations(scene.trees, scene.windows), directory, ended):
            yield
        return
    if scene.windows:
        raise SimulatorError("plain files cannot show faults: leave out --plain or the faults")
    if len(scene.trees) > 1:
        raise SimulatorError("plain files cannot come and go: leave out --plain or the changes")
    with written(scene.trees[0].tree, directory, scene.edges_ns):
        yield


def _make_empty(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        occupied = any(directory.iterdir())
    except OSError as error:
        raise SimulatorError(f"{directory} cannot be used: {error.strerror}") from error
    if occupied:
        raise SimulatorError(f"{directory} is not empty: name an empty or a new directory")


def _end_with_stdin(ended: threading.Event) -> None:
    while os.read(0, 4096):
        pass
    ended.set()


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    # Not sys.exit: a reader with a kept descriptor keeps libfuse's threads in a lazily
    # unmounted file system, and only the end of the process lets both go.
    os._exit(code)
