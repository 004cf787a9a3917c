"""What the documentation names is what the code has, and the other way round."""

import argparse
import re
import shlex
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
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
from tests.bench.__main__ import BENCHES
from tests.serve.parts import FakeAgent, view
from tests.store.jobs import job

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
BLOCK = r"^```\w*\n(.*?)^```"

by_document = pytest.mark.parametrize(
    "document",
    sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md")]),
    ids=lambda path: str(path.relative_to(ROOT)),
)


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


@pytest.fixture
def routes(tmp_path: Path) -> set[str]:
    with ThreadPoolExecutor() as executor:
        gate = Gate(HttpSettings(), local=True)
        app = build_app(FakeAgent(tmp_path), executor, gate, "errors", local=True)
        return {resource.canonical for resource in app.router.resources()}


def test_every_route_is_documented_and_every_documented_one_exists(routes: set[str]) -> None:
    documented = {name for name in first_cells("api.md") if name.startswith("/")}

    assert documented == routes


def test_who_may_read_it_is_told_of_every_part_of_the_api(routes: set[str]) -> None:
    parts = {"/".join(route.split("/")[:4]) for route in routes if route.startswith("/api/")}
    classed = re.findall(r"`(/api/[\w/.]+)`", (DOCS / "security.md").read_text())

    assert sorted(classed) == sorted(parts)


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


def commands() -> list[str]:
    (found,) = (
        action.choices
        for action in parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    )
    return sorted(found)


def test_every_command_stands_in_the_readme_and_every_one_there_exists() -> None:
    documented = re.findall(r"\bflapd ([a-z][a-z-]+)", in_code(ROOT / "README.md"))

    assert sorted(set(documented)) == commands()


def test_every_command_is_explained_and_every_explained_one_exists() -> None:
    documented = [name.split()[1] for name in first_cells("commands.md") if name[:6] == "flapd "]

    assert sorted(documented) == commands()


def test_every_alert_is_listed_with_its_severity_and_every_listed_one_exists() -> None:
    files = (ROOT / "deploy/prometheus").glob("*.rules.yml")
    groups = [group for one in files for group in msgspec.yaml.decode(one.read_bytes())["groups"]]
    alerts = [rule for group in groups for rule in group["rules"] if "alert" in rule]
    listed = re.findall(
        r"^\| \[`(\w+)`\]\(\1\.md\) \| (\w+) \|",
        (DOCS / "runbooks/README.md").read_text(),
        re.MULTILINE,
    )

    assert sorted(listed) == sorted((one["alert"], one["labels"]["severity"]) for one in alerts)


def test_every_benchmark_has_its_budgets_told_and_every_one_told_exists() -> None:
    assert set(first_cells("performance.md")) == set(BENCHES)


def in_code(document: Path) -> str:
    """What stands in backquotes or blocks of code, a piece a line."""
    text = document.read_text()
    blocks = re.findall(BLOCK, text, re.DOTALL | re.MULTILINE)
    text = re.sub(BLOCK, "", text, flags=re.DOTALL | re.MULTILINE)
    return "\n".join([*blocks, *re.findall(r"`([^`]+)`", text)])


@by_document
def test_what_is_shown_to_be_typed_is_a_command_with_options_that_it_has(document: Path) -> None:
    for block in re.findall(BLOCK, document.read_text(), re.DOTALL | re.MULTILINE):
        for typed in re.findall(r"^(?:[$#] )?(?:\.venv/bin/)?flapd (.*)", block, re.MULTILINE):
            words = shlex.split(re.split(r"[;|&]", typed)[0], comments=True)
            parser().parse_args(words)


@by_document
def test_every_link_leads_somewhere(document: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", document.read_text())):
        name, _, heading = link.partition("#")
        if not name.startswith(("http:", "https:")):
            target = document.parent / name if name else document
            assert target.exists(), link
            assert not heading or heading in headings(target), link


def headings(document: Path) -> list[str]:
    """As links name them."""
    titles = re.findall(r"^#+ (.+)$", document.read_text(), re.MULTILINE)
    return [re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles]


def test_every_document_is_in_the_index() -> None:
    index = (DOCS / "README.md").read_text()

    assert [name for file in DOCS.glob("*.md") if f"({(name := file.name)})" not in index] == [
        "README.md"
    ]


@by_document
def test_every_path_that_is_named_exists(document: Path) -> None:
    paths = re.findall(
        r"`((?:flapd|tests|simulators|docs|scripts|systemd|deploy)/[\w./-]*)`",
        document.read_text(),
    )

    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_the_changes_tell_of_the_version_that_this_is() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)

    assert headings[0].startswith(f"{__version__} ")
