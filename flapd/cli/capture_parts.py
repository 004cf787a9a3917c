"""What goes into a capture beside the tree of sysfs; what cannot be had is told."""

import platform
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from flapd import __version__
from flapd.cli.client import NoAgentError, ask
from flapd.cli.config_text import config_text
from flapd.cli.target import Target
from flapd.cli.text import size
from flapd.config import Config
from flapd.model.errors import FlapdError
from flapd.sources.capture import Member
from flapd.sources.files import read_text
from flapd.store.history_copy import copy_history, copy_history_without_black_boxes

LARGEST_RING_BYTES = 256 << 20
LARGEST_WITH_BLACK_BOXES_BYTES = 64 << 20
LARGEST_HISTORY_BYTES = 512 << 20

_ANSWERS = {
    "status.json": "/api/v1/status",
    "ports.json": "/api/v1/ports?limit=1000",
    "metrics.txt": "/metrics",
}
_LIBRARIES = ("aiohttp", "msgspec", "prometheus-client", "rich", "structlog")


class Parts:
    """Gathers them; `left_out` says what is missing and why."""

    def __init__(self, config: Config, work: Path) -> None:
        """`work` is a directory for copies of what changes meanwhile."""
        self.left_out: dict[str, str] = {}
        self._config = config
        self._work = work

    def gather(self, targets: Sequence[Target], drivers: Sequence[str]) -> Iterator[Member]:
        """In the order of the format."""
        yield Member("versions.json", as_json(self._versions(drivers)))
        yield Member("config.toml", config_text(self._config).encode())
        yield from self._answers(targets)
        yield from self._ring()
        yield from self._history()

    def _versions(self, drivers: Sequence[str]) -> dict[str, Any]:
        kernel = platform.uname()
        modules = Path(self._config.paths.sysfs) / "module"
        return {
            "flapd": __version__,
            "python": platform.python_version(),
            "kernel": kernel.release,
            "kernel_build": kernel.version,
            "machine": kernel.machine,
            "system": _system(),
            "sqlite": sqlite3.sqlite_version,
            "libraries": {name: _library(name) for name in _LIBRARIES},
            "drivers": {name: _module(modules / name) for name in drivers},
        }

    def _answers(self, targets: Sequence[Target]) -> Iterator[Member]:
        for name, path in _ANSWERS.items():
            try:
                yield Member(f"agent/{name}", ask(targets, path))
            except NoAgentError as error:
                self.left_out["agent"] = str(error)
                return
            except FlapdError as error:
                self.left_out[f"agent/{name}"] = str(error)

    def _ring(self) -> Iterator[Member]:
        ring = Path(self._config.paths.ring)
        left_bytes = LARGEST_RING_BYTES
        try:
            files = sorted(path for path in ring.iterdir() if path.is_file())
        except OSError as error:
            self.left_out["ring"] = _why(error)
            return
        for file in files:
            name = f"ring/{file.name}"
            try:
                left_bytes -= file.stat().st_size
                if left_bytes < 0:
                    self.left_out[name] = f"all rings together are over {size(LARGEST_RING_BYTES)}"
                    return
                copy = self._work / f"ring-{file.name}"
                shutil.copyfile(file, copy)
            except OSError as error:
                self.left_out[name] = _why(error)
            else:
                yield Member(name, copy)

    def _history(self) -> Iterator[Member]:
        history, copy = Path(self._config.paths.state) / "history.sqlite", self._work / "history"
        try:
            if history.stat().st_size <= LARGEST_WITH_BLACK_BOXES_BYTES:
                copy_history(history, copy)
            else:
                copy_history_without_black_boxes(history, copy)
                self.left_out["black boxes"] = f"the history has {size(history.stat().st_size)}"
            copied_bytes = copy.stat().st_size
        except OSError as error:
            self.left_out["history.sqlite"] = _why(error)
        except FlapdError as error:
            self.left_out["history.sqlite"] = str(error)
        else:
            if copied_bytes > LARGEST_HISTORY_BYTES:
                self.left_out["history.sqlite"] = f"it has {size(copied_bytes)}"
            else:
                yield Member("history.sqlite", copy)


def as_json(told: Any) -> bytes:
    return msgspec.json.format(msgspec.json.encode(told, order="deterministic"), indent=2)


def _why(error: OSError) -> str:
    return f"{error.filename}: {error.strerror}"


def _system() -> str | None:
    try:
        return platform.freedesktop_os_release().get("PRETTY_NAME")
    except OSError:
        return None


def _library(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _module(directory: Path) -> str | None:
    """None for what is part of the kernel and has no version of its own."""
    try:
        return read_text(directory / "version")
    except OSError:
        return None
