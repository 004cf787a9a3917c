"""Follows one file turn by turn, in the test's own thread."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path

from flapd.model.finding import Finding
from flapd.sources.follow.followed_file import FollowedFile
from flapd.sources.follow.position import Position
from flapd.sources.follow.registry import Registry
from flapd.sources.follow.regular import open_regular
from tests.sources.follow.lines import numbers


class Reader:
    """What was told, in order, and how far reading had come."""

    def __init__(self, positions: Mapping[str, Position] | None = None) -> None:
        self.findings: list[Finding] = []
        self.jobs: list[str | None] = []
        self.positions: dict[str, Position] = {}
        self.registry = Registry(self._tell, self._at, positions or {})

    def _tell(self, job: str | None, findings: list[Finding]) -> None:
        self.findings += findings
        self.jobs += [job] * len(findings)

    def _at(self, position: Position) -> None:
        self.positions[position.key] = position

    def take(self) -> list[int]:
        """What was told since this was asked last."""
        told, self.findings = numbers(self.findings), []
        return told

    def follow(self, path: Path, *, job: str | None = None, is_new: bool = False) -> FollowedFile:
        return FollowedFile(
            str(path),
            f"8:1 {path}",
            self.registry,
            partial(open_regular, path),
            scope="node1",
            path=path,
            is_new=is_new,
            job=job,
        )
