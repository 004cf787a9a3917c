"""ControlApi: what changes something: planned work, repairs; on the Unix socket only."""

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from typing import Annotated

import msgspec
from aiohttp import web

from flapd.core.fabric.view import MaintenanceView
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, in_thread, json_answer
from flapd.serve.errors import ApiError
from flapd.serve.route import Question, Route

LONGEST_SECONDS = 30 * 86_400

_Text = Annotated[str, msgspec.Meta(max_length=500)]
_Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]


class MaintenanceRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    for_seconds: Annotated[float, msgspec.Meta(gt=0, le=LONGEST_SECONDS)]
    reason: Annotated[str, msgspec.Meta(min_length=1, max_length=500)]
    port: _Name | None = None
    """None = all ports."""


class RepairRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    port: _Name
    note: _Text = ""


class MaintenanceItem(msgspec.Struct, frozen=True):
    port: str | None
    until: str
    reason: str


class MaintenanceAnswer(msgspec.Struct, frozen=True):
    maintenance: list[MaintenanceItem]


class RepairAnswer(msgspec.Struct, frozen=True):
    port: str
    note: str


class ControlApi:
    def __init__(self, agent: Agent, executor: Executor) -> None:
        self._agent = agent
        self._executor = executor

    def routes(self) -> Iterable[Route]:
        path = "/api/v1/maintenance"
        return (
            Route("GET", path, "Planned work that goes on", self._planned, MaintenanceAnswer),
            Route(
                "POST",
                path,
                "Planned work begins: alerts and damping leave it out",
                self._maintain,
                MaintenanceAnswer,
                body=MaintenanceRequest,
            ),
            Route("DELETE", path, "All planned work ends", self._end, MaintenanceAnswer),
            Route(
                "POST",
                "/api/v1/repaired",
                "Cable or module was replaced: the penalty is cleared",
                self._repaired,
                RepairAnswer,
                body=RepairRequest,
            ),
        )

    async def _planned(self, _question: Question) -> web.Response:
        return self._told(self._agent.snapshot().maintenance)

    async def _maintain(self, question: Question) -> web.Response:
        asked: MaintenanceRequest = question.body
        keys = [None] if asked.port is None else self._keys(asked.port)
        until_ns = time.monotonic_ns() + round(asked.for_seconds * SECOND_NS)

        def maintain() -> tuple[MaintenanceView, ...]:
            return [self._agent.maintain(key, until_ns, asked.reason) for key in keys][-1]

        return self._told(await in_thread(self._executor, maintain))

    async def _end(self, _question: Question) -> web.Response:
        return self._told(await in_thread(self._executor, self._agent.end_maintenance))

    async def _repaired(self, question: Question) -> web.Response:
        asked: RepairRequest = question.body
        for key in self._keys(asked.port):
            await in_thread(self._executor, self._agent.repaired, key, asked.note)
        return json_answer(encoded(RepairAnswer(asked.port, asked.note)))

    def _keys(self, name: str) -> list[str]:
        """Of the port with this name, and of the members of its bond."""
        found = [view.port for view in self._agent.snapshot().ports if view.port.name == name]
        if not found:
            raise ApiError("not_found", f"port: there is no port {name}", "port")
        return [port.key for port in found]

    def _told(self, planned: Sequence[MaintenanceView]) -> web.Response:
        return json_answer(encoded(MaintenanceAnswer(maintenance_items(self._agent, planned))))


def maintenance_items(agent: Agent, planned: Sequence[MaintenanceView]) -> list[MaintenanceItem]:
    """By names of ports; what a bond's members share with it is told once."""
    names = {view.port.key: view.port.name for view in agent.snapshot().ports}
    items = [
        MaintenanceItem(
            None if one.key is None else names.get(one.key, one.key),
            rfc3339(one.until_unix_ns),
            one.reason,
        )
        for one in planned
    ]
    return list(dict.fromkeys(items))
