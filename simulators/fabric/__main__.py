"""`python -m simulators.fabric`: serves a scenario until it is told to end."""

import argparse
import os
import signal
import sys
import threading
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from simulators.errors import SimulatorError
from simulators.fabric.faults import fault_windows
from simulators.fabric.mount import mounted
from simulators.fabric.operations import Operations
from simulators.fabric.plain import written
from simulators.fabric.port import SimulatedPort
from simulators.fabric.schedule import nanoseconds
from simulators.fabric.spec import Spec, read_spec
from simulators.fabric.tree import build_tree, simulated_ports
from simulators.fabric.truth import Truth, boot_id, truth_of, write_truth

_WRONG_USE = 2


@dataclass(frozen=True)
class _Arguments:
    spec: Path
    mount: Path
    truth: Path
    origin_in: float
    plain: bool
    until_eof: bool


def main() -> int:
    """0 when told to end, 2 with a sentence on stderr where it cannot begin."""
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: ended.set())
    try:
        _serve(_arguments(), ended)
    except SimulatorError as error:
        print(error, file=sys.stderr)
        return _WRONG_USE
    return 0


def _arguments() -> _Arguments:
    parser = argparse.ArgumentParser(prog="python -m simulators.fabric", description=__doc__)
    # Absolute, since libfuse changes the working directory to / even in the foreground.
    add = parser.add_argument
    add("--spec", type=_absolute, required=True, metavar="FILE", help="the scenario, JSON")
    add("--mount", type=_absolute, required=True, metavar="DIR", help="an empty directory")
    add("--truth", type=_absolute, required=True, metavar="FILE", help="written when it is ready")
    add("--origin-in", type=float, default=0.0, metavar="SECONDS", help="schedule begins then")
    add("--plain", action="store_true", help="ordinary files instead of FUSE; no faults")
    add("--until-eof", action="store_true", help="end also when stdin ends")
    return _Arguments(**vars(parser.parse_args()))


def _absolute(text: str) -> Path:
    return Path(text).absolute()


def _serve(arguments: _Arguments, ended: threading.Event) -> None:
    spec = read_spec(arguments.spec)
    begin_ns = time.monotonic_ns()
    origin_ns = begin_ns + nanoseconds(arguments.origin_in)
    unix_offset_ns = time.time_ns() - time.monotonic_ns()
    ports = simulated_ports(spec, origin_ns, begin_ns)
    truth = truth_of(ports, origin_ns, unix_offset_ns, boot_id())
    _make_empty(arguments.mount)
    if arguments.until_eof:
        threading.Thread(target=_end_with_stdin, args=(ended,), daemon=True).start()
    with _served(spec, ports, origin_ns, arguments, ended):
        _tell_ready(truth, arguments)
        ended.wait()


def _served(
    spec: Spec,
    ports: tuple[SimulatedPort, ...],
    origin_ns: int,
    arguments: _Arguments,
    ended: threading.Event,
) -> AbstractContextManager[None]:
    tree = build_tree(ports)
    if not arguments.plain:
        operations = Operations(tree, fault_windows(spec.faults, tree, origin_ns))
        return mounted(operations, arguments.mount, ended)
    if spec.faults:
        raise SimulatorError("plain files cannot show faults: leave out --plain or the faults")
    edges_ns = [edge for port in ports for edge in port.timeline.edges_ns()]
    return written(tree, arguments.mount, edges_ns)


def _make_empty(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
        occupied = any(directory.iterdir())
    except OSError as error:
        raise SimulatorError(f"{directory} cannot be used: {error.strerror}") from error
    if occupied:
        raise SimulatorError(f"{directory} is not empty: name an empty or a new directory")


def _tell_ready(truth: Truth, arguments: _Arguments) -> None:
    write_truth(truth, arguments.truth)
    print(f"ready {arguments.mount}", flush=True)


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
