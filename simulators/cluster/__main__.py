"""`python -m simulators.cluster`: what befalls a fleet, told as its nodes would."""

import argparse
import asyncio
import os
import sys
import time
from pathlib import Path

import msgspec
from msgspec.structs import replace

from simulators.cluster.fleet import Fleet
from simulators.cluster.names import topology_lines
from simulators.cluster.player import play
from simulators.cluster.spec import read_fleet
from simulators.running import run_to_end

_DESCRIPTION = """\
Simulates a fleet of nodes with jobs on them, and writes what really happened. With --nats it tells
a server, each event at its time, what an agent on each node would, heartbeats as well.
"""

_EPILOG = """\
A fleet is JSON. A job of 1,024 ranks, one of whose 128 nodes has a flapping link:

  {"jobs": [{"spec": {}}],
   "happenings": [{"kind": "flap", "at_seconds": 420, "down_seconds": 2, "node": 77, "port": 3}]}

What else may be said is told in simulators/cluster/spec.py.
"""


def main() -> int:
    return run_to_end(lambda: _run(_arguments()))


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m simulators.cluster",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--spec", type=Path, metavar="FILE", required=True, help="the fleet, JSON")
    add("--truth", type=Path, metavar="FILE", help="who hurt whom, and whose flaps did not, JSON")
    add("--topology", type=Path, metavar="FILE", help="which switch is behind each port, CSV")
    add("--nats", metavar="URL", help="the server that is told, live")
    add(
        "--leave-out",
        type=int,
        nargs="*",
        default=(),
        metavar="N",
        help="nodes that tell for themselves",
    )
    add(
        "--origin-ns",
        type=int,
        metavar="NS",
        help="with --nats: monotonic time of the fleet's second 0 (default: now)",
    )
    add("--until-eof", action="store_true", help="with --nats: end also when stdin ends")
    return parser.parse_args()


def _run(arguments: argparse.Namespace) -> None:
    spec, origin_ns = read_fleet(arguments.spec), arguments.origin_ns or time.monotonic_ns()
    if arguments.nats is not None:
        spec = replace(spec, origin_unix_ns=time.time_ns() + origin_ns - time.monotonic_ns())
    fleet = Fleet(spec)
    if arguments.truth is not None:
        arguments.truth.write_bytes(msgspec.json.format(msgspec.json.encode(fleet.truth)))
    if arguments.topology is not None:
        arguments.topology.write_text("\n".join(topology_lines(spec)) + "\n")
    if arguments.nats is not None:
        print(f"ready {spec.nodes - len(arguments.leave_out)} nodes", flush=True)
        asyncio.run(_played(fleet, arguments, origin_ns))


async def _played(fleet: Fleet, arguments: argparse.Namespace, origin_ns: int) -> None:
    playing = asyncio.ensure_future(play(fleet, arguments.nats, origin_ns, arguments.leave_out))
    if arguments.until_eof:
        loop = asyncio.get_running_loop()
        loop.add_reader(0, lambda: os.read(0, 4096) or playing.cancel())
    try:
        await playing
    except asyncio.CancelledError:
        return


if __name__ == "__main__":
    sys.exit(main())
