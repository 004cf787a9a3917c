"""The description of the API is that of what the server has."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from flapd.serve.access import Gate
from flapd.serve.routes import build_app
from flapd.serve.settings import HttpSettings
from tests.serve.parts import FakeAgent, over_socket, over_tcp

PATH = "/api/v1/openapi.json"


def routed(app: web.Application) -> set[tuple[str, str]]:
    """Methods and paths of an application; HEAD goes with GET."""
    return {
        (route.method, route.resource.canonical)
        for route in app.router.routes()
        if route.resource is not None and route.method != "HEAD"
    }


async def described(directory: Path, *, local: bool) -> Any:
    over = over_socket if local else over_tcp
    async with over(FakeAgent(directory), directory) as session, session.get(PATH) as answer:
        assert answer.status == 200
        return await answer.json()


@pytest.mark.parametrize("local", [False, True])
async def test_each_listener_describes_the_routes_it_has(tmp_path: Path, local: bool) -> None:
    document = await described(tmp_path, local=local)
    with ThreadPoolExecutor() as executor:
        gate = Gate(HttpSettings(), local=local)
        app = build_app(FakeAgent(tmp_path), executor, gate, "errors", local=local)

    told = {
        (method.upper(), path)
        for path, operations in document["paths"].items()
        for method in operations
    }
    assert told == routed(app)


async def test_parameters_say_what_the_handlers_accept(tmp_path: Path) -> None:
    document = await described(tmp_path, local=True)

    flaps = document["paths"]["/api/v1/flaps"]["get"]
    by_name = {parameter["name"]: parameter for parameter in flaps["parameters"]}
    assert by_name["limit"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 1000,
        "default": 100,
    }
    assert "driver_reload" in by_name["cause"]["schema"]["enum"]
    assert by_name["since"]["description"].startswith("an RFC 3339 time")
    one = document["paths"]["/api/v1/flaps/{id}"]["get"]
    assert [(found["in"], found["required"]) for found in one["parameters"]] == [("path", True)]


async def test_a_default_is_one_that_may_be_written(tmp_path: Path) -> None:
    document = await described(tmp_path, local=True)

    post = document["paths"]["/api/v1/recording"]["post"]
    schema = next(found["schema"] for found in post["parameters"] if found["name"] == "for")
    assert schema["default"] == "10m"
    assert re.fullmatch(schema["pattern"], schema["default"])


async def test_answers_always_have_every_field_and_questions_need_not(tmp_path: Path) -> None:
    schemas = (await described(tmp_path, local=True))["components"]["schemas"]

    assert set(schemas["PortItem"]["required"]) == set(schemas["PortItem"]["properties"])
    assert schemas["MaintenanceRequest"]["required"] == ["for_seconds", "reason"]
    assert schemas["ErrorAnswer"]["required"] == ["error"]


async def test_every_operation_has_a_name_of_its_own(tmp_path: Path) -> None:
    document = await described(tmp_path, local=True)

    names = [
        operation["operationId"]
        for operations in document["paths"].values()
        for operation in operations.values()
    ]
    assert len(names) == len(set(names))
