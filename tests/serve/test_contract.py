"""Whatever a client asks, the answer is the one that /api/v1/openapi.json describes."""

import asyncio
import math
import threading
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from aiohttp import web
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import CHECKS
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from flapd.core.fabric.view import Snapshot
from flapd.model.loss import Range
from flapd.serve.access import Gate
from flapd.serve.connection import Reception
from flapd.serve.server import BuildApp, agent_app
from flapd.serve.settings import HttpSettings
from tests.serve.parts import FakeAgent, view
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage

EXAMPLES = 12
CHECKED: list[Any] = CHECKS.get_all()
LOOSE = [check for check in CHECKED if check.__name__ != "positive_data_acceptance"]
NOT_TOLD = ("since", "until", "cursor", "for", "step", "down")
"""Parameters of which a schema cannot tell all: `until` before `since`, a cursor that is none of
ours, a span that is too long."""
ENDLESS = "/api/v1/stream"
ENDLESS_LOSS = incident("i2", lost_seconds=Range(1, math.inf, math.inf), cost=None)


async def serve(build: BuildApp, port: "Future[int]", stopped: asyncio.Event) -> None:
    """All routes, also those of the Unix socket, on a port of the loopback."""
    with ThreadPoolExecutor() as executor:
        gate = Gate(HttpSettings(), local=True)
        runner = web.AppRunner(build(executor, gate, True))
        await runner.setup()
        assert runner.server is not None
        loop = asyncio.get_running_loop()
        server = await loop.create_server(Reception(runner.server, 100), "127.0.0.1", 0)
        port.set_result(server.sockets[0].getsockname()[1])
        await stopped.wait()
        server.close()
        await runner.cleanup()


@contextmanager
def everything_on_tcp(directory: Path) -> Iterator[str]:
    agent = FakeAgent(directory, [outage("f1"), outage("f2", down=20, up=None)])
    agent.happens(job(), fault(), fault("undated", at=None), stall(), incident(), ENDLESS_LOSS)
    agent.shown = Snapshot(ports=(view(),), wall_offset_ns=0)
    with on_tcp(agent_app(agent)) as url:
        yield url
    agent.history.close()


@contextmanager
def on_tcp(build: BuildApp) -> Iterator[str]:
    port: Future[int] = Future()
    stopped = asyncio.Event()
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(serve(build, port, stopped)))
    thread.start()
    try:
        yield f"http://127.0.0.1:{port.result(10)}"
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join()
        loop.close()


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with everything_on_tcp(tmp_path_factory.mktemp("agent")) as found:
        yield found


def checks_of(case: schemathesis.Case[Any]) -> list[Any]:
    names = [parameter.name for parameter in case.operation.query]
    return LOOSE if set(names) & set(NOT_TOLD) else CHECKED


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_any_question_is_answered_as_described(url: str, mode: GenerationMode) -> None:
    ask_anything(url, mode)


def ask_anything(url: str, mode: GenerationMode) -> None:
    schema = schemathesis.openapi.from_url(f"{url}/api/v1/openapi.json")
    asked = 0
    for found in schema.exclude(path=ENDLESS).get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @given(case=operation.as_strategy(generation_mode=mode))
        @settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
        def ask(case: schemathesis.Case[Any]) -> None:
            case.call_and_validate(checks=checks_of(case))

        with suppress(Unsatisfiable):  # what takes nothing cannot be asked wrongly
            ask()
            asked += 1
    assert asked > 5
