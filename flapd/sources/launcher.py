"""Launcher: a process that starts the children for an agent which may not give them anything.

Privileges that a unit or a container gives are for the processes that read. The one that speaks
HTTP lays them down for good, and whatever it started then would have none: so this process, which
keeps them, listens to nobody but its agent and ends with it, starts the children. They have their
links to the agent itself.
"""

import argparse
import socket
from contextlib import suppress

from flapd.sources.starting import OwnChild, start_own

STARTED_BY_IT = ("flapd.sources.sampler", "flapd.sources.job_reader")
LONGEST_BYTES = 256


def serve(link: socket.socket) -> None:
    """Until the agent ends: takes a module's name and a link, tells the child's pid or why not."""
    children: list[OwnChild] = []
    while True:
        name, descriptors, _, _ = socket.recv_fds(link, LONGEST_BYTES, 1)
        module = name.decode()
        if module not in STARTED_BY_IT or len(descriptors) != 1:
            return
        children = [each for each in children if not each.has_ended()]
        with socket.socket(fileno=descriptors[0]) as childs:
            try:
                children.append(start_own(module, childs))
            except OSError as error:
                link.send(str(error).encode()[:LONGEST_BYTES])
            else:
                link.send(str(children[-1].pid).encode())


def main() -> None:
    parser = argparse.ArgumentParser(prog="flapd-launcher")
    parser.add_argument("--link", type=int, required=True, help="descriptor of the agent's socket")
    with suppress(ConnectionError):
        serve(socket.socket(fileno=parser.parse_args().link))


if __name__ == "__main__":
    main()
