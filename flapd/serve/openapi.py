"""OpenAPI: the routes as a document, from the types and parameters that the handlers use."""

import json
import re
from collections.abc import Sequence
from typing import Any

import msgspec

from flapd import __version__
from flapd.serve.errors import ErrorAnswer
from flapd.serve.parameter import Parameter
from flapd.serve.route import Route

_REFERENCE = "#/components/schemas/{name}"
_SECURITY = {
    "bearer": {"type": "http", "scheme": "bearer", "description": "the token of http.token_file"},
    "basic": {"type": "http", "scheme": "basic", "description": "the same token as password"},
    "certificate": {"type": "mutualTLS", "description": "a certificate of http.client_ca"},
}
_SHOWN: list[dict[str, list[str]]] = [{name: []} for name in _SECURITY]


def document(routes: Sequence[Route]) -> dict[str, Any]:
    """OpenAPI 3.1."""
    types = [kind for route in routes for kind in (route.answer, route.body) if kind is not None]
    types.append(ErrorAnswer)
    schemas, components = msgspec.json.schema_components(types, ref_template=_REFERENCE)
    by_type = dict(zip(types, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, by_type)
    bodies = {route.body.__name__ for route in routes if route.body is not None}
    return {
        "openapi": "3.1.0",
        "info": {"title": "flapd", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {
                name: component if name in bodies else _always_whole(component)
                for name, component in components.items()
            },
            "securitySchemes": _SECURITY,
        },
    }


def _operation(route: Route, by_type: dict[Any, Any]) -> dict[str, Any]:
    answers = {kind: {"schema": {"type": "string"}} for kind in route.streams}
    if route.answer is not None:
        answers["application/json"] = {"schema": by_type[route.answer]}
    error = {"application/json": {"schema": by_type[ErrorAnswer]}}
    described: dict[str, Any] = {
        "operationId": _operation_id(route),
        "summary": route.summary,
        "parameters": [_parameter(parameter) for parameter in route.parameters],
        "responses": {
            "200": {"description": "the answer", "content": answers},
            "default": {"description": "an error", "content": error},
        },
        # Where it is open, what a token adds are fields.
        "security": _SHOWN if route.access == "jobs" else [{}, *_SHOWN],
    }
    if route.body is not None:
        content = {"application/json": {"schema": by_type[route.body]}}
        described["requestBody"] = {"required": True, "content": content}
    return described


def _operation_id(route: Route) -> str:
    kind = ["page"] if "text/html" in route.streams else []
    words = re.findall(r"[a-z]+", route.path.removeprefix("/api/v1"))
    return "_".join([route.method.lower(), *kind, *words])


def _parameter(parameter: Parameter) -> dict[str, Any]:
    schema = dict(parameter.schema)
    if parameter.default is not None:
        is_text = schema["type"] == "string"
        schema["default"] = parameter.default if is_text else json.loads(parameter.default)
    return {
        "name": parameter.name,
        "in": parameter.place,
        "required": parameter.required,
        "description": parameter.right,
        "schema": schema,
    }


def _always_whole(component: dict[str, Any]) -> dict[str, Any]:
    """What we tell has every field, also those that a reader may find missing in older answers."""
    properties = component.get("properties", {})
    required = set(component.get("required", ()))
    told = [name for name, field in properties.items() if name in required or "default" in field]
    return component | {"required": told} if told else component
