"""Frame: what every page has around its content."""

import time

from flapd import __version__
from flapd.model.times import rfc3339
from flapd.serve.page.html import Child, Html, element, join

_REFUSED = (
    "You see what is told of the fabric. Jobs, stalls, faults, incidents and prices are shown to"
    " those who have the token of http.token_file or a client certificate, or to all with"
    " http.open = true."
)


def document(
    node: str, title: str, sees_jobs: bool, *content: Child, scripts: tuple[str, ...] = ()
) -> Html:
    """A whole page; `scripts` besides the one that keeps it live."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", f"{title} - {node} - flapd"),
        element("link", rel="icon", href="/page/icon.svg"),
        element("link", rel="stylesheet", href="/page/page.css"),
        element("link", rel="stylesheet", href="/page/uplot.css") if "charts.js" in scripts else "",
        [_script(name) for name in ("live.js", *scripts)],
    )
    body = element(
        "body",
        element("a", "Skip to the content", href="#main", class_="skip"),
        _header(node),
        element("p", id="connection", role="status"),
        element("main", None if sees_jobs else _notice(), *content, id="main"),
        element(
            "footer",
            f"flapd {__version__}. Times are UTC; local time stands beside them where it differs.",
        ),
        data_jobs="yes" if sees_jobs else "no",
        data_now=rfc3339(time.time_ns()),
    )
    return Html("<!doctype html>" + element("html", head, body, lang="en"))


def _script(name: str) -> Html:
    if name == "charts.js":
        plot = element("script", src="/page/uplot.js", defer=True)
        return join([plot, element("script", type="module", src="/page/charts.js")])
    return element("script", type="module", src=f"/page/{name}")


def _header(node: str) -> Html:
    links = {"/": "Now", "/incidents": "Incidents", "/flaps": "Outages"}
    return element(
        "header",
        element("a", element("b", "flapd"), " ", node, href="/", class_="home"),
        element("nav", [element("a", text, href=to) for to, text in links.items()]),
    )


def _notice() -> Html:
    show = element("a", "Show the token", href="/incidents")
    return element("p", _REFUSED, " ", show, ".", class_="notice")
