"""A headless Chromium that tells what a page did wrong."""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Page, expect, sync_playwright

expect.set_options(timeout=20_000)
CHROMIUM = shutil.which("chromium")
AXE = Path(__file__).parent / "axe/axe.min.js"
_WEIGHT = """performance.getEntries().reduce((all, one) => all + (one.encodedBodySize ?? 0), 0)"""
_SERIOUS = ("serious", "critical")


class Watched:
    """A page, and what was wrong with it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.hosts: set[str] = set()
        page.on("console", lambda said: self._console(said.type, said.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("request", lambda request: self.hosts.add(urlsplit(request.url).netloc))

    def _console(self, kind: str, text: str) -> None:
        if kind in ("error", "warning"):
            self.complaints.append(text)

    def bytes(self) -> int:
        """Of the page and all that it has fetched so far."""
        return int(self.page.evaluate(_WEIGHT))

    def serious(self) -> list[str]:
        """What axe-core holds to be serious or worse."""
        self.page.evaluate(AXE.read_text())
        found = self.page.evaluate("axe.run()")
        return [
            f"{one['id']}: {json.dumps([node['html'] for node in one['nodes']])}"
            for one in found["violations"]
            if one["impact"] in _SERIOUS
        ]

    def is_wider_than_its_window(self) -> bool:
        script = "document.documentElement.scrollWidth > window.innerWidth"
        return bool(self.page.evaluate(script))


@contextmanager
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@contextmanager
def watched(browser: Browser, **options: Any) -> Iterator[Watched]:
    """A page of a fresh profile; `options` are those of a context."""
    context = browser.new_context(**{"timezone_id": "Europe/Berlin", **options})
    context.set_default_timeout(20_000)
    try:
        yield Watched(context.new_page())
    finally:
        context.close()
