"""The dependency rule: a room imports only from rooms below it, and the core stays pure."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

ROWS: list[set[str]] = [
    {"flapd.model"},
    {"flapd.core"},
    {"flapd.store"},
    {"flapd.sources"},
    {"flapd.serve", "flapd.fleet"},
    {"flapd.limits"},
    {"flapd.logs", "flapd.config", "flapd.service", "flapd.event_log", "flapd.privileges"},
    {"flapd.pump", "flapd.fleet_pump", "flapd.opening", "flapd.orders", "flapd.reload"},
    {"flapd.node", "flapd.hub"},
    {"flapd.lifecycle"},
    {"flapd.cli"},
    {"flapd.__main__"},
]
"""From the ground up; rooms of one row never import each other."""

PURE = {
    "__future__",
    "bisect",
    "collections",
    "csv",
    "dataclasses",
    "enum",
    "flapd",
    "functools",
    "hashlib",
    "heapq",
    "itertools",
    "math",
    "msgspec",
    "operator",
    "re",
    "typing",
}
"""All that the core may import: nothing with a clock, a file, or chance in it."""

HEAVY = {"aiohttp", "asyncio", "prometheus_client", "pyroute2", "rich", "structlog", "sqlite3"}
"""What the children, which start with every agent, must not carry."""


def modules(root: Path, package: str) -> dict[str, Path]:
    found = {}
    for path in sorted((root / package).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(path: Path) -> Iterator[str]:
    """Every module this file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            assert node.module is not None
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def room_of(module: str) -> str | None:
    for row in ROWS:
        for room in row:
            if module == room or module.startswith(room + "."):
                return room
    return None


def rank_of(room: str) -> int:
    return next(rank for rank, row in enumerate(ROWS) if room in row)


def goes_up(room: str, other: str | None) -> bool:
    return other is not None and other != room and rank_of(other) >= rank_of(room)


def breaches(root: Path) -> list[str]:
    """Every import that goes the wrong way."""
    found = []
    for module, path in modules(root, "flapd").items():
        room = room_of(module)
        if module == "flapd":
            continue
        if room is None:
            found.append(f"{module} is in no room")
            continue
        found += [
            f"{module} imports {imported}"
            for imported in imports(path)
            if imported.partition(".")[0] == "simulators"
            or goes_up(room, room_of(imported))
            or (room == "flapd.core" and imported.partition(".")[0] not in PURE)
        ]
    for module, path in modules(root, "simulators").items():
        found += [
            f"{module} imports {imported}"
            for imported in imports(path)
            if imported.startswith("flapd.") and not imported.startswith("flapd.model")
        ]
    return found


def test_every_import_obeys_the_dependency_rule() -> None:
    assert breaches(ROOT) == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("flapd/model/port.py", "from flapd.core.engine import Engine"),
        ("flapd/core/engine.py", "import time"),
        ("flapd/core/engine.py", "from os import path"),
        ("flapd/store/history.py", "from flapd.sources import discovery"),
        ("flapd/serve/app.py", "from flapd.fleet import publish"),
        ("flapd/fleet/publish.py", "import flapd.serve.app"),
        ("flapd/sources/sampler.py", "def late(): from flapd.node import Node"),
        ("flapd/node.py", "from simulators.fabric import tree"),
        ("flapd/somewhere.py", "pass"),
        ("simulators/job.py", "from flapd.core.engine import Engine"),
    ],
)
def test_a_breach_is_found(tmp_path: Path, file: str, line: str) -> None:
    (tmp_path / file).parent.mkdir(parents=True)
    (tmp_path / file).write_text(line)

    assert len(breaches(tmp_path)) >= 1


@pytest.mark.parametrize("child", ["flapd.sources.sampler", "flapd.sources.job_reader"])
def test_a_child_process_carries_nothing_heavy(child: str) -> None:
    reached, todo = set(), {child}
    known = modules(ROOT, "flapd")
    heavy = set()
    while todo:
        module = todo.pop()
        reached.add(module)
        for imported in imports(known[module]):
            heavy |= {imported.partition(".")[0]} & HEAVY
            if imported in known and imported not in reached:
                todo.add(imported)

    assert heavy == set()
