"""`python -m simulators.job`: works out what becomes of a job, and plays one node of it."""

import argparse
import os
import signal
import sys
import threading
import time
from pathlib import Path

import msgspec

from simulators.errors import SimulatorError
from simulators.job.job import simulate
from simulators.job.live import LiveNode, live_node
from simulators.job.node import node_scenario
from simulators.job.spec import JobSpec, read_job
from simulators.job.truth import write_job_truth
from simulators.running import run_to_end

_DESCRIPTION = """\
Simulates a training job whose ranks wait for each other, with whatever befalls it, and writes
what really happened, why, and what it cost. With --live the processes, the log and the dumps of
one node of it come and go as they would; its ports are a scenario of `python -m simulators.fabric`.
"""

_EPILOG = """\
A job is JSON. The smallest one is a job of 1,024 ranks one of whose ports is down for 2 s:

  {"happenings": [{"kind": "outage", "at_seconds": 120, "down_seconds": 2}]}

What else may be said is told in simulators/job/spec.py and happenings.py.
"""


def main() -> int:
    return run_to_end(lambda: _run(_arguments()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulators.job",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--spec", type=Path, metavar="FILE", required=True, help="the job, JSON")
    add("--truth", type=Path, metavar="FILE", help="what happens when, and what it costs, JSON")
    add("--node", type=int, default=0, metavar="N", help="the node that is shown (default 0)")
    add("--scenario", type=Path, metavar="FILE", help="its ports, for python -m simulators.fabric")
    add("--live", type=Path, metavar="DIR", help="its processes, and here its log and its dumps")
    add(
        "--origin-ns",
        type=int,
        metavar="NS",
        help="with --live: monotonic time of the job's second 0 (default: now)",
    )
    add("--until-eof", action="store_true", help="with --live: end also when stdin ends")
    return parser.parse_args()


def _run(arguments: argparse.Namespace) -> None:
    spec = read_job(arguments.spec)
    _refuse_unknown_node(spec, arguments.node)
    run = simulate(spec)
    if arguments.truth is not None:
        write_job_truth(run.truth, arguments.truth)
    if arguments.scenario is not None:
        scenario = node_scenario(run, arguments.node)
        arguments.scenario.write_bytes(msgspec.json.encode(scenario))
    if arguments.live is None:
        return
    origin_ns = arguments.origin_ns or time.monotonic_ns()
    with live_node(run, arguments.node, arguments.live, origin_ns) as live:
        _end_when_told(live, until_eof=arguments.until_eof)
        print(f"ready {live.log}", flush=True)
        live.wait()


def _end_when_told(live: LiveNode, *, until_eof: bool) -> None:
    """By a flag: an exception would end the wait for a thread that still starts processes."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: live.end())
    if until_eof:
        threading.Thread(target=_end_with_stdin, args=(live,), daemon=True).start()


def _end_with_stdin(live: LiveNode) -> None:
    while os.read(0, 4096):
        pass
    live.end()


def _refuse_unknown_node(spec: JobSpec, node: int) -> None:
    if not 0 <= node < spec.nodes:
        raise SimulatorError(f"node {node} is none of this job: 0 to {spec.nodes - 1} are")


if __name__ == "__main__":
    sys.exit(main())
