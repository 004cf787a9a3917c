"""The rules, as Prometheus itself takes them; its own test runner holds what fires and what not."""

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.programs import program

ROOT = Path(__file__).parent.parent.parent
PROMETHEUS = ROOT / "deploy/prometheus"
RULES = PROMETHEUS / "flapd.rules.yml"
FILES = (RULES, PROMETHEUS / "flapd-hub.rules.yml")
CASES = tuple(file.with_name(file.name.replace(".yml", ".test.yml")) for file in FILES)
RUNBOOKS = '{{ with query "flapd:runbooks" }}{{ . | first | label "url" }}{{ end }}'
OTHERS = {"up"}
"""Metrics that are not flapd's."""


@cache
def rules() -> list[dict[str, Any]]:
    groups = [msgspec.yaml.decode(file.read_bytes())["groups"] for file in FILES]
    return [rule for of_file in groups for group in of_file for rule in group["rules"]]


def alerts() -> list[dict[str, Any]]:
    return [rule for rule in rules() if "alert" in rule]


def checked(tool: str, *arguments: str | Path) -> None:
    done = subprocess.run(
        [program(tool), *map(str, arguments)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_rules() -> None:
    checked("promtool", "check", "rules", "--lint-fatal", *FILES)


def test_each_alert_fires_and_is_silent_when_it_should_be() -> None:
    checked("promtool", "test", "rules", *CASES)


def test_prometheus_takes_the_example_of_scraping() -> None:
    checked("promtool", "check", "config", PROMETHEUS / "scrape.example.yml")


def test_alertmanager_takes_the_example_of_routes() -> None:
    checked("amtool", "check-config", ROOT / "deploy/alertmanager/flapd.example.yml")


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_of_each_alert_both_sides_are_tried(alert: dict[str, Any]) -> None:
    tried = [
        bool(check.get("exp_samples"))
        for cases in CASES
        for case in msgspec.yaml.decode(cases.read_bytes())["tests"]
        for check in case["promql_expr_test"]
        if f'alertname="{alert["alert"]}"' in check["expr"]
    ]

    assert set(tried) == {True, False}


@pytest.mark.parametrize("alert", alerts(), ids=lambda alert: str(alert["alert"]))
def test_each_alert_says_what_is_wrong_and_what_to_do(alert: dict[str, Any]) -> None:
    assert alert["labels"]["severity"] in ("page", "ticket")
    assert set(alert["annotations"]) == {"summary", "description", "runbook_url"}
    runbook = ROOT / "docs/runbooks" / f"{alert['alert']}.md"
    assert alert["annotations"]["runbook_url"] == f"{RUNBOOKS}/{runbook.name}"
    assert runbook.is_file()


@pytest.mark.parametrize("base", ["docs/runbooks", "https://wiki.example/flapd"])
def test_where_runbooks_are_is_set_in_one_place(tmp_path: Path, base: str) -> None:
    (tmp_path / RULES.name).write_text(RULES.read_text().replace('"docs/runbooks"', f'"{base}"'))
    labels = {"instance": "n1", "job": "flapd", "scope": "node", "severity": "ticket"}
    summary, description, _ = annotations_of("FlapdAgentGone")
    told = {
        "summary": summary.replace("{{ $labels.instance }}", "n1"),
        "description": description,
        "runbook_url": f"{base}/FlapdAgentGone.md",
    }
    case = {
        "interval": "1m",
        "input_series": [{"series": 'up{job="flapd", instance="n1"}', "values": "0x20"}],
        "alert_rule_test": [
            {
                "eval_time": "15m",
                "alertname": "FlapdAgentGone",
                "exp_alerts": [{"exp_labels": labels, "exp_annotations": told}],
            }
        ],
    }
    file = tmp_path / "case.yml"
    file.write_bytes(msgspec.json.encode({"rule_files": [RULES.name], "tests": [case]}))
    checked("promtool", "test", "rules", file)


def annotations_of(name: str) -> list[str]:
    (alert,) = (alert for alert in alerts() if alert["alert"] == name)
    return list(alert["annotations"].values())


def test_each_runbook_is_of_an_alert() -> None:
    named = {path.stem for path in (ROOT / "docs/runbooks").glob("Flapd*.md")}

    assert named == {alert["alert"] for alert in alerts()}


def test_the_rules_ask_for_nothing_that_is_not_there() -> None:
    documented = set(re.findall(r"flapd_\w+", (ROOT / "docs/metrics.md").read_text()))
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    asked = set(re.findall(r"\bflapd[_:][\w:]+|\bup\b", json.dumps([r["expr"] for r in rules()])))

    assert asked <= documented | recorded | OTHERS


def test_everything_recorded_is_used() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    asking = [[rule["expr"], rule.get("annotations")] for rule in rules()]
    asked = set(re.findall(r"flapd:[\w:]+", json.dumps(asking)))

    assert asked == recorded
