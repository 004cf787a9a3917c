"""Reading for a capture: a child process that reads the files of one device.

A read may hang in a driver for a minute, and nothing ends the process that waits in it;
whoever started it goes on without it. It says on stdout what it is about to read before it
reads, a line of JSON each.
"""

import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TypeAlias

import msgspec

from flapd.sources.capture_files import (
    NETDEVS,
    Directory,
    device_directories,
    device_links,
    files_in,
    netdev_directories,
    netdev_links,
    place_of,
    ports_of,
)
from flapd.sources.files import KeptFile, list_names, reason_of


class Planned(msgspec.Struct, frozen=True, tag="planned"):
    """These files are read next, in this order."""

    paths: list[str]


class Found(msgspec.Struct, frozen=True, tag="found"):
    """A link and where it leads, or a directory where `target` is None."""

    path: str
    target: str | None = None


class Read(msgspec.Struct, frozen=True, tag="read"):
    """What a file gave: its content, or the errno that its read gave."""

    path: str
    content: bytes = b""
    error: str | None = None


class Excluded(msgspec.Struct, frozen=True, tag="excluded"):
    """A port that is not read, as it is configured."""

    port: str


Told: TypeAlias = Planned | Found | Read | Excluded


class DeviceReading:
    """Tells everything of one device, its netdevs included."""

    def __init__(self, sysfs: Path, exclude: Sequence[str], say: Callable[[Told], None]) -> None:
        self._sysfs = sysfs
        self._exclude = exclude
        self._say = say
        self._netdevs: set[str] = set()

    def tell(self, device: str) -> None:
        """Netdevs that can be found without a read come first: they do not wait for firmware.

        Of a device whose ports are all excluded nothing is read.
        """
        ports, excluded = ports_of(self._sysfs, device, self._exclude)
        for number in excluded:
            self._say(Excluded(f"{device}/{number}"))
        if ports or not excluded:
            self._tell_device(device, ports)

    def _tell_device(self, device: str, ports: Sequence[str]) -> None:
        beside = f"class/infiniband/{device}/device/net"
        self._tell_netdevs(list_names(self._sysfs / beside))
        self._find([beside, *device_links(device)])
        gave = self._read_all(device_directories(device, ports))
        self._tell_netdevs(_names(gave, "ndevs", "parent"))

    def _tell_netdevs(self, names: Iterable[str]) -> None:
        for name in names:
            if name in self._netdevs or not (self._sysfs / NETDEVS / name).exists():
                continue
            self._netdevs.add(name)
            self._find(netdev_links(name))
            gave = self._read_all(netdev_directories(name))
            self._tell_netdevs([*_names(gave, "slaves"), *self._master(name)])

    def _master(self, netdev: str) -> list[str]:
        link = self._sysfs / NETDEVS / netdev / "master"
        return [link.readlink().name] if link.is_symlink() else []

    def _find(self, paths: Iterable[str]) -> None:
        """Directories, and links to them."""
        for path in paths:
            if (self._sysfs / path).is_dir():
                real = self._real(path)
                if real is not None:
                    self._say(Found(real))

    def _read_all(self, directories: Iterable[Directory]) -> dict[str, bytes]:
        """By the path as it was asked for."""
        wanted = []
        for directory, names in directories:
            self._find([directory])
            wanted += files_in(self._sysfs, directory, names)
        real = {path: place for path in wanted if (place := self._real(path)) is not None}
        self._say(Planned(list(real.values())))
        return {path: self._read(path, place) for path, place in real.items()}

    def _real(self, path: str) -> str | None:
        place = place_of(self._sysfs, path)
        if place is None:
            return None
        for link, target in place.links.items():
            self._say(Found(link, target))
        return place.path

    def _read(self, path: str, place: str) -> bytes:
        file = KeptFile(self._sysfs / path)
        try:
            content = file.read()
        except OSError as error:
            self._say(Read(place, error=reason_of(error)))
            return b""
        finally:
            file.close()
        self._say(Read(place, content))
        return content


def _names(gave: dict[str, bytes], *asked: str) -> list[str]:
    """Names of netdevs in these files, or in files of these directories."""
    found: list[str] = []
    for path, content in gave.items():
        parts = path.split("/")
        if parts[-1] in asked or parts[-2] in asked:
            found += [
                name for name in content.decode("ascii", "replace").split() if "/" not in name
            ]
    return found


def main() -> None:
    sysfs, device, *exclude = sys.argv[1:]

    def say(told: Told) -> None:
        sys.stdout.buffer.write(msgspec.json.encode(told) + b"\n")
        sys.stdout.buffer.flush()

    DeviceReading(Path(sysfs), exclude, say).tell(device)


if __name__ == "__main__":
    main()
