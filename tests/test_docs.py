"""What the documentation names is what the code has, and the other way round."""

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from flapd.cli.arguments import parser
from flapd.config import Config
from flapd.core.fabric.catalogue import LINK_DOWNED
from flapd.core.fabric.view import Snapshot
from flapd.model.times import Edge
from flapd.serve.access import Gate
from flapd.serve.agent import Health
from flapd.serve.metrics import Scrape, render
from flapd.serve.routes import build_app
from flapd.serve.settings import HttpSettings
from tests.serve.parts import FakeAgent, view

DOCS = Path(__file__).parent.parent / "docs"


def first_cells(document: str) -> list[str]:
    """What stands in backquotes in the first column of any table."""
    rows = re.findall(r"^\| (.+?) \|", (DOCS / document).read_text(), re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row)]


def test_every_setting_is_documented_and_every_documented_one_exists() -> None:
    settings = {
        f"{section}.{key}"
        for section in Config.__struct_fields__
        for key in type(getattr(Config(), section)).__struct_fields__
    }

    assert sorted(first_cells("configuration.md")) == sorted(settings)


def test_every_route_is_documented_and_every_documented_one_exists(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as executor:
        gate = Gate(HttpSettings(), local=True)
        app = build_app(FakeAgent(tmp_path), executor, gate, "errors", local=True)
        routes = {resource.canonical for resource in app.router.resources()}

    documented = {name for name in first_cells("api.md") if name.startswith("/")}
    assert documented == routes


def test_every_metric_is_documented_and_every_documented_one_exists() -> None:
    down = Edge(10, 20, 0)
    port = view(
        values={
            "state": 4,
            "phys_state": 5,
            "rate_mbps": 1,
            "hw_counters/new": 1,
            "hw_counters/packet_seq_err": 1,
            LINK_DOWNED: 3,
        },
        last_down=down,
        last_down_ns=5,
        downgraded=True,
    )
    snapshot = Snapshot(ports=(port,), stuck_readers={"mlx5_0": 5})
    body, _ = render(Scrape(snapshot, Health(), 10, 0), "")
    counters = re.compile(r"flapd_port_(?!counter_|driver_|rate_|retransmissions_)\w+_total")
    exported = set()
    for family in text_string_to_metric_families(body.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        exported.add("flapd_port_<counter>_total" if counters.fullmatch(name) else name)

    documented = {name for name in first_cells("metrics.md") if name.startswith("flapd_")}
    assert documented == exported


def test_every_command_stands_in_the_readme() -> None:
    text = (DOCS.parent / "README.md").read_text() + (DOCS.parent / "CHANGELOG.md").read_text()
    actions = parser()._subparsers._group_actions  # type: ignore[union-attr]
    commands = actions[0].choices

    assert commands
    assert [command for command in commands if command not in text] == []
