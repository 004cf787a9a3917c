"""What Grafana asks Prometheus for the dashboards, with its variables put in."""

import json
from pathlib import Path
from typing import Any

BOARDS = sorted((Path(__file__).parents[2] / "deploy/grafana").glob("flapd-*.json"))
_VARIABLES = {
    "$__rate_interval": "1m",
    "$__range": "1h",
    "$cluster": ".*",
    "$instance": ".+",
    "$device": ".*",
    "$price": "2.5",
}


def board(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def panels(path: Path) -> list[dict[str, Any]]:
    return list(board(path)["panels"])


def queries(path: Path) -> list[str]:
    """Expressions; one of Grafana's variables that is not known here stays in, and is no PromQL."""
    targets = [target for panel in panels(path) for target in panel.get("targets", ())]
    return [with_variables(target["expr"]) for target in targets]


def with_variables(expr: str) -> str:
    for name, value in _VARIABLES.items():
        expr = expr.replace(name, value)
    return expr
