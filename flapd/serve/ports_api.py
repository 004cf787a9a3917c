"""PortsApi: the ports as they are, and their last samples."""

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from functools import cached_property
from typing import Any

from aiohttp import web

from flapd.core.fabric.catalogue import short_name
from flapd.core.fabric.view import PortView
from flapd.model.event import PortChange
from flapd.model.times import SECOND_NS, rfc3339
from flapd.serve.agent import Agent
from flapd.serve.answers import encoded, encoded_list, encoded_table, in_thread, json_answer
from flapd.serve.bonds import port_key, with_members
from flapd.serve.errors import ApiError
from flapd.serve.items import PortItem, PortList, Table
from flapd.serve.names import counter_names, named_ports
from flapd.serve.parameter import bad, instant, names, span, text
from flapd.serve.query import PAGE_PARAMETERS, SPAN_PARAMETERS, refuse_backwards
from flapd.serve.route import Question, Route
from flapd.serve.stream import Names
from flapd.serve.told import changed_port, port_item
from flapd.serve.told_jobs import naming_of
from flapd.store.database import HistoryError
from flapd.store.samples import SampleTable, samples

_DAY_NS = 86_400 * SECOND_NS
_DEFAULT_NS = 60 * SECOND_NS

_PORT = (
    text("device", "a device such as mlx5_0", "path"),
    text("number", "the number of a port", "path"),
)


class Ports:
    """Items of the ports at one moment; without a readable history `flaps_24h` is not known."""

    def __init__(self, agent: Agent, now_ns: int) -> None:
        self._agent = agent
        self._now_ns = now_ns
        self._snapshot = agent.snapshot()
        self._sources = agent.health.sources

    @cached_property
    def views(self) -> list[PortView]:
        return with_members(self._snapshot.ports)

    def page(self, limit: int, cursor: str | None) -> PortList:
        """Those after the port whose key is `cursor`; ApiError where there is no such port."""
        keys = [view.port.key for view in self.views]
        if cursor is not None and cursor not in keys:
            raise bad("cursor", "`next` of the page before, asked for anew where a port has gone")
        start = 0 if cursor is None else keys.index(cursor) + 1
        told = self.views[start : start + limit]
        return PortList(
            [self._item(view) for view in told],
            expected=self._snapshot.ports_expected,
            found=self._found(),
            blind=sorted(self._snapshot.blind),
            next=told[-1].port.key if start + limit < len(keys) else None,
        )

    def _found(self) -> int | None:
        if not self._snapshot.is_scouted:
            return None
        return sum(view.present for view in self.views)

    def of_key(self, key: str) -> PortItem | None:
        """Of a port, or of the bond whose member has this key."""
        keys = {view.port.key: port_key(view) for view in self._snapshot.ports}
        shown = keys.get(key)
        return next((self._item(view) for view in self.views if view.port.key == shown), None)

    def named(self, name: str) -> PortView:
        """ApiError where no port has this name."""
        for view in named_ports(self.views):
            if view.port.name == name:
                return view
        raise ApiError("not_found", f"there is no port {name}", "port")

    def item(self, name: str) -> PortItem:
        return self._item(self.named(name))

    def _item(self, view: PortView) -> PortItem:
        return port_item(
            view,
            now_ns=self._now_ns,
            flaps_24h=None if self._flaps is None else self._flaps.get(view.port.key, 0),
            stuck_since_ns=self._snapshot.stuck_readers.get(view.port.device),
            is_blind=view.port.device in self._snapshot.blind,
            sources=self._sources.get(view.port.key, {}),
            node=self._agent.about.node,
        )

    @cached_property
    def _flaps(self) -> dict[str, int] | None:
        """Of the last day, by the key of the port that they are shown at."""
        try:
            counts = self._agent.history.flaps_per_port(time.time_ns() - _DAY_NS)
        except HistoryError:
            return None
        shown: dict[str, int] = {}
        for view in self._snapshot.ports:
            key = port_key(view)
            shown[key] = shown.get(key, 0) + counts.get(view.port.key, 0)
        return shown


def names_now(agent: Agent) -> Names:
    """For the stream of an agent."""
    ports = Ports(agent, time.monotonic_ns())

    def changed(change: PortChange) -> object | None:
        port = ports.of_key(change.key)
        return None if port is None else changed_port(port, change)

    return Names(changed, naming_of(agent.snapshot()))


class PortsApi:
    def __init__(self, agent: Agent, executor: Executor) -> None:
        self._agent = agent
        self._executor = executor

    def routes(self) -> Iterable[Route]:
        one = "/api/v1/ports/{device}/{number}"
        counters = names("counters", "names of counters of the port, such as a,b")
        span_of_samples = (
            instant("since"),
            counters,
            span("step", shortest="1ms", longest="1h"),
        )
        return (
            Route(
                "GET",
                "/api/v1/ports",
                "Every port as it is now, which no span of time changes",
                self._ports,
                PortList,
                (*SPAN_PARAMETERS, *PAGE_PARAMETERS),
            ),
            Route("GET", one, "One port", self._port, PortItem, _PORT),
            Route(
                "GET",
                f"{one}/samples",
                "What was read of a port, down-sampled to `step` with min and max kept",
                self._samples,
                Table,
                (*_PORT, *span_of_samples),
            ),
        )

    async def _ports(self, question: Question) -> web.Response:
        ports = Ports(self._agent, time.monotonic_ns())
        limit, cursor = question.values["limit"], question.values["cursor"]
        refuse_backwards(question.values["since"], question.values["until"])
        body = await in_thread(self._executor, lambda: encoded_list(ports.page(limit, cursor)))
        return json_answer(body)

    async def _port(self, question: Question) -> web.Response:
        ports = Ports(self._agent, time.monotonic_ns())
        name = _asked_name(question)
        return json_answer(await in_thread(self._executor, lambda: encoded(ports.item(name))))

    async def _samples(self, question: Question) -> web.Response:
        view = Ports(self._agent, time.monotonic_ns()).named(_asked_name(question))
        return json_answer(await in_thread(self._executor, self._table, view, question.values))

    def _table(self, view: PortView, values: Mapping[str, Any]) -> bytes:
        snapshot = self._agent.snapshot()
        if snapshot.wall_offset_ns is None:
            raise ApiError("unavailable", "it is not known yet what time it is")
        since_unix_ns = values["since"]
        if since_unix_ns is None:
            since_unix_ns = time.time_ns() - _DEFAULT_NS
        table = samples(
            self._agent.about.ring,
            view.port.key,
            since_unix_ns - snapshot.wall_offset_ns,
            _files(view, values["counters"]),
            values["step"] or 0,
            snapshot.boot,
        )
        return encoded_table(_shown(view, table.columns), _dated(table, snapshot.wall_offset_ns))


def _asked_name(question: Question) -> str:
    asked = question.request.match_info
    return f"{asked['device']}/{asked['number']}"


def _files(view: PortView, asked: Sequence[str] | None) -> list[str] | None:
    """Files of these columns, by the names that the port's item has for them."""
    if asked is None:
        return None
    files = {short_name(name): name for name in {**view.values, **view.errors}}
    files |= {short: name for name, short in counter_names(view).items()}
    for name in asked:
        if name not in files:
            raise bad("counters", f"there is no {name} here; known are: {', '.join(sorted(files))}")
    return [files[name] for name in dict.fromkeys(asked)]


def _shown(view: PortView, columns: Sequence[str]) -> list[str]:
    shown = counter_names(view)
    return [shown.get(name, short_name(name)) for name in columns]


def _dated(table: SampleTable, wall_offset_ns: int) -> list[list[Any]]:
    return [
        [rfc3339((begun_ns or 0) + wall_offset_ns), *values] for begun_ns, *values in table.rows
    ]
