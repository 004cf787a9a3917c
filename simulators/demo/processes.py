"""Processes: a /proc in which an agent sees those of its own simulated node, and no others."""

from pathlib import Path

import psutil

_PROC = Path("/proc")


class OwnProcesses:
    """A directory of links into the real one; all but processes is there."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir()
        for entry in _PROC.iterdir():
            if not entry.name.isdigit() or entry.name == "1":
                (directory / entry.name).symlink_to(entry)

    def take_children(self, pid: int) -> int:
        """From now on those of this process are seen, as many as returned."""
        try:
            children = psutil.Process(pid).children()
        except psutil.Error:
            return 0
        for child in children:
            link = self.directory / str(child.pid)
            if not link.is_symlink():
                link.symlink_to(_PROC / str(child.pid))
        return len(children)
