"""Machines: what tests look at was done in the background, while other tests ran.

A guest waits most of its time, for links that are down and agents that look again: beside other
tests it takes little. One machine runs after the other, in a thread.
"""

import shutil
import tempfile
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from tests.kernel.image import built
from tests.kernel.machine import Machine
from tests.kernel.payload import make_payload

PROGRAMS: dict[str, tuple[str | None, str, float]] = {
    "bare": ("tests.kernel.guest.bare", "sources.json", 900.0),
    "systemd": (None, "after_reset.json", 900.0),
}
"""By the name of a machine: what runs in it, None = systemd; what it tells last; its seconds."""


class Machines:
    """Those of these names, from now on."""

    def __init__(self, wanted: Collection[str]) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="flapd-machines-"))
        self._thread = ThreadPoolExecutor(1, "machines")
        self._machines = {name: self._machine(name) for name in PROGRAMS if name in wanted}
        disks = self._thread.submit(self._disks)
        self._ended = {
            name: self._thread.submit(_run, machine, disks)
            for name, machine in self._machines.items()
        }

    def out(self, name: str) -> Path:
        """What its guest had as /out, once it has ended; what went wrong is raised each time."""
        self._ended[name].result()
        return self._machines[name].out

    def stop(self) -> None:
        """Leaves nothing behind."""
        for machine in self._machines.values():
            machine.stop()
        self._thread.shutdown(cancel_futures=True)
        shutil.rmtree(self._directory)

    def _machine(self, name: str) -> Machine:
        out = self._directory / name
        out.mkdir()
        return Machine(out, *PROGRAMS[name])

    def _disks(self) -> tuple[Path, Path]:
        return built(), make_payload(self._directory, with_package="systemd" in self._machines)


def _run(machine: Machine, disks: "Future[tuple[Path, Path]]") -> None:
    machine.run(*disks.result())
