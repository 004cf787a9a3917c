"""From a flap to the pager: a real agent, the rules as they ship, Prometheus and Alertmanager."""

import re
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime
from pathlib import Path
from typing import NamedTuple

import pytest

from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import two_ports
from tests.deploy.queries import BOARDS, queries
from tests.system.harness import ROOT, SimulatedNode, simulated_fabric, until
from tests.system.ports import free_port
from tests.system.prometheus import (
    EVALUATE_SECONDS,
    SCRAPE_SECONDS,
    Alert,
    Prometheus,
    Webhook,
    alertmanager,
    prometheus,
)

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}"),
]

ORIGIN_IN_SECONDS = 25.0
"""After which the port goes down: by then Prometheus has scraped that it never did."""
SETTLED_SECONDS = 1
"""An agent counts a down when it is sure of it."""
RULES_IN_A_ROW = 3
"""Groups of rules that one alert goes through."""


class Watched(NamedTuple):
    node: SimulatedNode
    prometheus: Prometheus
    webhook: Webhook


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    directory = tmp_path_factory.mktemp("prometheus")
    # What else runs on this machine is not this node's.
    settings = "[jobs]\ndiscover = false\n[flap]\nmerge_within = 0\nboot_grace = 0"
    node = SimulatedNode(directory, settings)
    agent = f"127.0.0.1:{free_port()}"
    config = node.config.read_text()
    node.config.write_text(config.replace('http.listen = ""', f'http.listen = "{agent}"'))
    with ExitStack() as started:
        webhook = Webhook()
        started.callback(webhook.close)
        alerts_to = started.enter_context(alertmanager(directory, webhook))
        fabric = simulated_fabric(node, two_ports((Flap(0.0, 1.0),), ()), ORIGIN_IN_SECONDS)
        started.enter_context(fabric)
        node.start()
        started.callback(node.terminate)
        until(node.is_ready, "readiness")
        rules = short_rules()
        server = started.enter_context(prometheus(directory, rules, agent, alerts_to))
        until(lambda: server.query("flapd_link_flaps_total == 0"), "a scrape before the flap")
        yield Watched(node, server, webhook)


def short_rules() -> str:
    """The rules as they ship, but that a flap is forgotten after 10 s instead of an hour."""
    shipped = (ROOT / "deploy/prometheus/flapd.rules.yml").read_text()
    shortened = shipped.replace("[1h]", "[10s]")
    assert shortened != shipped
    return shortened


def test_a_flap_is_at_the_pager_within_two_scrapes_and_resolves(
    watched: Watched, capsys: pytest.CaptureFixture[str]
) -> None:
    fired = until(
        lambda: watched.webhook.told("FlapdLinkFlapped", "firing"), "the alert", seconds=60
    )
    resolved = until(
        lambda: watched.webhook.told("FlapdLinkFlapped", "resolved"), "its end", seconds=60
    )
    (flap,) = watched.node.get("/api/v1/flaps")["items"]
    up = datetime.fromisoformat(flap["up"]["latest"].replace("Z", "+00:00")).timestamp()
    began = seconds_of(fired, "startsAt")
    with capsys.disabled():
        print(  # noqa: T201 - what was measured
            f"\nfrom the end of a flap to the alert {began - up:.1f} s, to the webhook "
            f"{fired.arrived - up:.1f} s; resolved after {resolved.arrived - up:.1f} s"
        )

    device, port = flap["port"].split("/")
    assert (fired.told["labels"]["device"], fired.told["labels"]["port"]) == (device, port)
    assert f"{flap['port']} on " in fired.told["annotations"]["summary"]
    assert (ROOT / fired.told["annotations"]["runbook_url"]).is_file()
    most = SETTLED_SECONDS + 2 * SCRAPE_SECONDS + RULES_IN_A_ROW * EVALUATE_SECONDS
    assert began - up <= most
    assert {alert.told["labels"]["alertname"] for alert in watched.webhook.alerts} == {
        "FlapdLinkFlapped"
    }


def seconds_of(alert: Alert, field: str) -> float:
    written = re.sub(r"(\.\d{6})\d*", r"\1", alert.told[field]).replace("Z", "+00:00")
    return datetime.fromisoformat(written).timestamp()


@pytest.mark.parametrize("path", BOARDS, ids=lambda path: str(path.stem))
def test_prometheus_answers_every_query_of_the_dashboards(watched: Watched, path: Path) -> None:
    for expr in queries(path):
        watched.prometheus.query(expr)


def test_the_dashboards_show_the_node_and_its_flap(watched: Watched) -> None:
    asked = {expr: len(watched.prometheus.query(expr)) for path in BOARDS for expr in queries(path)}
    (state,) = (expr for expr in asked if expr.startswith("flapd_port_up"))
    ranked = next(expr for expr in asked if "flapd_link_flaps_total" in expr)

    assert asked[state] == 2
    assert asked[ranked] == 1
    assert sum(map(bool, asked.values())) > len(asked) / 2
