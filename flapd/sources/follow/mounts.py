"""Mounts: on which file system a path lies, told without touching that file system.

Format of /proc/PID/mountinfo: Documentation/filesystems/proc.rst, 3.5.
"""

import re
from pathlib import PurePosixPath

import msgspec

_NETWORK = frozenset(
    {
        *("9p", "afs", "beegfs", "ceph", "cifs", "daos", "gfs2", "glusterfs", "gpfs", "lustre"),
        *("mmfs", "ncp", "nfs", "nfs4", "ocfs2", "orangefs", "panfs", "smb3", "wekafs"),
    }
)
_ESCAPED = re.compile(r"\\([0-7]{3})")
_MOST_MOUNTS = 20_000


class Mount(msgspec.Struct, frozen=True):
    number: int
    device: str
    """Major and minor number: of one file system, wherever it is mounted."""
    point: str
    kind: str

    @property
    def is_shared(self) -> bool:
        """Other nodes see the same files in it."""
        return self.kind in _NETWORK or self.kind.startswith("fuse")


UNKNOWN = Mount(0, "unknown", "/", "unknown")


def mounts_in(mountinfo: str) -> list[Mount]:
    found = (_mount(line) for line in mountinfo.splitlines()[:_MOST_MOUNTS])
    return [mount for mount in found if mount is not None]


def _mount(line: str) -> Mount | None:
    before, _, behind = line.partition(" - ")
    fields, kind = before.split(" "), behind.partition(" ")[0]
    if len(fields) < 6 or not fields[0].isdigit() or not kind:
        return None
    point = _ESCAPED.sub(lambda found: chr(int(found[1], 8)), fields[4])
    return Mount(int(fields[0]), fields[2], point, kind)


def mount_of(path: str, mounts: list[Mount]) -> Mount:
    """By its name alone; of mounts on one point the last hides the others."""
    place = PurePosixPath(path)
    around = {str(place), *map(str, place.parents)}
    covering = [mount for mount in mounts if mount.point in around]
    return max(reversed(covering), key=lambda mount: len(mount.point), default=UNKNOWN)


def mount_numbered(number: int, mounts: list[Mount]) -> Mount:
    return next((mount for mount in mounts if mount.number == number), UNKNOWN)
