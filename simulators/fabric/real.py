"""Real: a netdev of this machine whose files stand in the simulated tree, read when asked."""

import errno
from collections.abc import Iterator
from pathlib import Path

from simulators.errors import SimulatorError
from simulators.fabric.node import File, Leaves, refusal
from simulators.fabric.timeline import Phase


class RealNetdev:
    """The netdev whose sysfs directory this is; SimulatorError where there is none."""

    def __init__(self, directory: str) -> None:
        self._directory = Path(directory)
        if not (self._directory / "carrier_down_count").exists():
            raise SimulatorError(f"real_netdev {directory} is no directory of a netdev")

    def phase(self, _t_ns: int) -> Phase:
        """What its carrier says now; a read of the carrier of a disabled netdev is refused."""
        try:
            return "active" if _read(self._directory / "carrier") == b"1\n" else "down"
        except OSError as error:
            return "admin" if error.errno == errno.EINVAL else "down"

    def files(self) -> Leaves:
        """Those that can be read of the directory itself and of `statistics`."""
        return {
            str(path.relative_to(self._directory)): _passed_through(path) for path in self._paths()
        }

    def _paths(self) -> Iterator[Path]:
        for directory in (self._directory, self._directory / "statistics"):
            for path in sorted(directory.iterdir()):
                if path.is_file() and not path.is_symlink() and path.stat().st_mode & 0o444:
                    yield path


def _passed_through(path: Path) -> File:
    return File(lambda _: _read(path), "flows")


def _read(path: Path) -> bytes:
    """What a read gives now; of a netdev that is gone ENODEV, as from a kept descriptor."""
    try:
        return path.read_bytes()
    except FileNotFoundError as error:
        raise refusal(errno.ENODEV) from error
