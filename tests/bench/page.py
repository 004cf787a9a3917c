"""Page: until a browser shows the on-call page of a long history, and what it weighs."""

import time

from playwright.sync_api import Browser

from flapd.model.times import SECOND_NS
from tests.bench.agent import node_of, started
from tests.bench.figure import Figure, Scale, percentile
from tests.bench.history import EVERY_SECONDS, write_history
from tests.bench.machine import memory_directory
from tests.store.outages import WALL_NS
from tests.system.browser import CHROMIUM, Watched, chromium, watched
from tests.system.harness import SimulatedNode, simulated_fabric
from tests.system.ports import free_port

_VIEWPORT = {"width": 1280, "height": 940}
_PAINTED_MS = """performance.getEntriesByName("first-contentful-paint")[0]?.startTime"""


def page(scale: Scale) -> list[Figure]:
    """Each time as somebody opens it who never did: nothing is in the browser's cache."""
    if CHROMIUM is None:
        return _figures(scale, None, None, "there is no chromium here")
    with memory_directory() as directory:
        node = SimulatedNode(directory)
        address = f"127.0.0.1:{free_port()}"
        text = node.config.read_text()
        listening = f'http.listen = "{address}"\nhttp.open = true'
        node.config.write_text(text.replace('http.listen = ""', listening))
        _write_until_now(node, scale.outages)
        with (
            simulated_fabric(node, node_of(scale.ports), 0.0, "--plain"),
            started(node),
            chromium() as browser,
        ):
            looks = [_look(browser, f"http://{address}/") for _ in range(scale.starts)]
    painted = percentile([seconds for seconds, _ in looks], 0.5)
    return _figures(scale, painted, looks[-1][1] / 1000, f"median of {len(looks)}")


def _write_until_now(node: SimulatedNode, outages: int) -> None:
    """One every 30 s up to now: 2,880 of them within the day that the page shows."""
    now_second = (time.time_ns() - WALL_NS) / SECOND_NS
    write_history(node.history, outages, now_second - outages * EVERY_SECONDS)


def _look(browser: Browser, url: str) -> tuple[float, int]:
    """Seconds to the first content on the screen, and bytes of all that was fetched for it."""
    with watched(browser, viewport=_VIEWPORT) as seen:
        seen.page.goto(url)
        seen.page.wait_for_selector("#timeline[data-marks]")
        assert seen.complaints == []
        return _painted_seconds(seen), seen.bytes()


def _painted_seconds(seen: Watched) -> float:
    painted_ms = seen.page.wait_for_function(_PAINTED_MS).json_value()
    return float(painted_ms) / 1000


def _figures(
    scale: Scale, seconds: float | None, kilobytes: float | None, note: str
) -> list[Figure]:
    return [
        Figure(
            what=f"the page of {scale.outages:,} outages: first content in a browser",
            unit="s",
            value=seconds,
            budget=1,
            note=note,
        ),
        Figure(
            what="the page: all that it fetches",
            unit="kB",
            value=kilobytes,
            budget=250,
            note="" if kilobytes is not None else note,
        ),
    ]
