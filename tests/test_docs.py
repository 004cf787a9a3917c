"""What the documentation names is what the code has, and the other way round."""

import argparse
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from flapd import __version__
from flapd.cli.arguments import parser
from flapd.config import Config
from flapd.core.fabric.catalogue import LINK_DOWNED
from flapd.core.fabric.view import Snapshot
from flapd.core.job.view import JobsView
from flapd.model.fleet import Publishing
from flapd.model.times import Edge
from flapd.serve.access import Gate
from flapd.serve.agent import Health
from flapd.serve.metrics import Scrape, render
from flapd.serve.routes import build_app
from flapd.serve.settings import HttpSettings
from tests.serve.parts import FakeAgent, view
from tests.store.jobs import job

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"


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
        bit_error_ratio=1e-14,
    )
    snapshot = Snapshot(
        ports=(port,),
        stuck_readers={"mlx5_0": 5},
        is_scouted=True,
        jobs=JobsView(running=(job(),)),
    )
    body, _ = render(Scrape(snapshot, Health(fleet=Publishing()), 10, 0, sees_jobs=True), "")
    counters = re.compile(r"flapd_port_(?!counter_|driver_|rate_|retransmissions_)\w+_total")
    exported = set()
    for family in text_string_to_metric_families(body.decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        exported.add("flapd_port_<counter>_total" if counters.fullmatch(name) else name)

    documented = {name for name in first_cells("metrics.md") if name.startswith("flapd_")}
    assert documented == exported


def test_every_command_stands_in_the_readme_and_every_one_there_exists() -> None:
    (commands,) = (
        action.choices
        for action in parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    documented = re.findall(r"\bflapd ([a-z][a-z-]+)", in_code("README.md"))

    assert sorted(set(documented)) == sorted(commands)


def in_code(document: str) -> str:
    """What stands in backquotes or blocks of code, a piece a line."""
    text = (ROOT / document).read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return "\n".join([*blocks, *re.findall(r"`([^`]+)`", text)])


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md", "docs/architecture.md"])
def test_every_path_that_is_named_exists(document: str) -> None:
    text = (ROOT / document).read_text()
    paths = re.findall(r"`((?:flapd|tests|simulators|docs|scripts|systemd)/[\w./-]*)`", text)
    links = [link for link in re.findall(r"\]\(([^)#:]+)\)", text) if link]

    assert paths or links
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert [link for link in links if not (ROOT / document).parent.joinpath(link).exists()] == []


def test_the_changes_tell_of_the_version_that_this_is() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings[0].startswith(f"{__version__} ")
