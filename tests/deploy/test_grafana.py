"""The dashboards: made of code, asking for what there is, in what Prometheus understands."""

import importlib
import json
import re
import subprocess
from pathlib import Path

import pytest

from tests.deploy.queries import BOARDS, board, panels, queries
from tests.programs import program

ROOT = Path(__file__).parents[2]
METRICS = (ROOT / "docs/metrics.md").read_text()
OTHERS = {"up"}
"""Metrics that are not flapd's."""

by_board = pytest.mark.parametrize("path", BOARDS, ids=lambda path: str(path.stem))


def test_what_stands_there_is_what_the_code_makes() -> None:
    pytest.importorskip("grafana_foundation_sdk")
    made = importlib.import_module("deploy.grafana.__main__").dashboards()

    assert {path: path.read_text() for path in BOARDS} == dict(made), "make dashboards"


def test_there_are_a_fleet_its_nodes_and_their_cost() -> None:
    uids = [board(path)["uid"] for path in BOARDS]

    assert uids == ["flapd-cost", "flapd-fleet", "flapd-node"] == [path.stem for path in BOARDS]


@by_board
def test_ids_and_titles_are_unique_and_nothing_overlaps(path: Path) -> None:
    ids = [panel["id"] for panel in panels(path)]
    titles = [panel["title"] for panel in panels(path)]
    cells = [
        (panel["gridPos"]["x"] + x, panel["gridPos"]["y"] + y)
        for panel in panels(path)
        for x in range(panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["h"])
    ]

    assert len(set(ids)) == len(ids)
    assert len(set(titles)) == len(titles)
    assert len(set(cells)) == len(cells)
    assert max(x for x, _ in cells) < 24


@by_board
def test_prometheus_understands_each_query(path: Path, tmp_path: Path) -> None:
    rules = [{"record": f"q{at}", "expr": expr} for at, expr in enumerate(queries(path))]
    file = tmp_path / "queries.json"
    file.write_text(json.dumps({"groups": [{"name": "queries", "rules": rules}]}))
    done = subprocess.run(
        [program("promtool"), "check", "rules", "--lint=none", str(file)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert f"SUCCESS: {len(rules)} rules found" in done.stdout


@by_board
def test_each_query_asks_for_metrics_that_there_are(path: Path) -> None:
    documented = set(re.findall(r"flapd_\w+", METRICS))
    exported = (ROOT / "tests/serve/metrics.txt").read_text()
    for expr in queries(path):
        for metric in re.findall(r"\bflapd_\w+|\bup\b", expr):
            base = re.sub(r"_(bucket|sum|count)$", "", metric)
            is_counter = f"\n{metric}{{" in exported  # documented as flapd_port_<counter>_total
            assert base in documented | OTHERS or is_counter, f"{metric} in {expr}"


@by_board
def test_each_query_asks_for_the_nodes_that_were_chosen(path: Path) -> None:
    for panel in panels(path):
        for target in panel.get("targets", ()):
            selectors = re.findall(r"\b(?:flapd_\w+|up)\b(\{[^}]*\})?", target["expr"])
            for selector in selectors:
                assert 'cluster=~"$cluster"' in selector, panel["title"]
                assert 'instance=~"$instance"' in selector, panel["title"]


@by_board
def test_every_variable_that_is_used_is_there_and_every_one_there_is_used(path: Path) -> None:
    there = {variable["name"] for variable in board(path)["templating"]["list"]}
    text = json.dumps(panels(path)) + json.dumps(
        [variable.get("query", "") for variable in board(path)["templating"]["list"]]
    )
    used = set(re.findall(r"\$([a-z]\w*)", text))

    assert used == there
    assert {"datasource", "cluster", "instance", "device"} <= there


@by_board
def test_no_panel_shows_nothing_as_zero(path: Path) -> None:
    """A node of which nothing is known has no downs that are known, which is not none."""
    assert [expr for expr in queries(path) if re.search(r"\bor\b|\babsent\b", expr)] == []
