"""Pictures of the page of a node on which a simulated job was hurt: docs/images/page*.png."""

import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from flapd.model.event import Outage
from flapd.model.port import Port
from flapd.model.times import SECOND_NS, Edge
from tests.cli.here import Here, agent_at, recent
from tests.system.browser import chromium, watched
from tests.system.harness import ROOT
from tests.system.test_incident_told import flapped, told

PICTURES = (
    ("page", "/", 1280, 940, "light"),
    ("page-incident", "/incidents/{incident}", 1280, 1130, "dark"),
    ("page-small", "/", 400, 940, "dark"),
)
OTHERS = 30
DAY_SECONDS = 86_400


def others(ports: Sequence[Port]) -> Iterator[Outage]:
    """Outages of the day that hurt nobody."""
    rng = random.Random(3)
    now_ns, wall_ns = time.monotonic_ns(), time.time_ns() - time.monotonic_ns()
    for number in range(OTHERS):
        port = rng.choice(ports)
        begin_ns = now_ns - round(rng.uniform(60, DAY_SECONDS) * SECOND_NS)
        end_ns = begin_ns + round(rng.expovariate(1 / 4) * SECOND_NS)
        down = Edge(begin_ns, begin_ns + SECOND_NS // 10, wall_ns)
        up = Edge(end_ns, end_ns + SECOND_NS // 10, wall_ns)
        yield recent(f"other-{number}", down=down, up=up, port=port.name, key=port.key)


def take(directory: Path) -> None:
    engine, events = told(flapped(150.0))
    happened = others([view.port for view in engine.snapshot().ports])
    with agent_at(Here(directory), open=True) as (agent, url), chromium() as browser:
        agent.happens(*sorted(happened, key=lambda one: one.down.earliest_ns), *events)
        agent.shown = engine.snapshot()
        incident = next(event.id for event in reversed(events) if event.id.startswith("incident-"))
        for name, path, width, height, scheme in PICTURES:
            size = {"width": width, "height": height}
            with watched(browser, viewport=size, color_scheme=scheme) as seen:
                seen.page.goto(url + path.format(incident=incident))
                seen.page.wait_for_selector("#timeline[data-marks]")
                seen.page.screenshot(path=ROOT / f"docs/images/{name}.png")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        take(Path(made))
