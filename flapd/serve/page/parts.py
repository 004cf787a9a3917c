"""Parts of pages: tables, lists of facts, sections that are kept live."""

from collections.abc import Iterable, Mapping, Sequence

from flapd.serve.page.html import Child, Html, element

Row = Sequence[Child]


def section(name: str, title: str, *children: Child) -> Html:
    """Its content is replaced when something changed; `name` is its id."""
    heading = element("h2", title, id=f"{name}-title")
    content = element("div", *children, id=name, data_live=True)
    return element("section", heading, content, aria_labelledby=f"{name}-title")


class Column:
    """`kind`: `number`, `wide` for what a small screen can do without, or both."""

    def __init__(self, title: str, kind: str = "") -> None:
        self.title, self.kind = title, kind


def table(
    caption: str, columns: Sequence[Column], rows: Iterable[Row], nothing: str, kind: str = ""
) -> Html:
    """`nothing` is what is said where there are no rows.

    `kind`: `narrow` is as wide as its content, `stack` has a cell a line on a small screen.
    """
    body = [_row(columns, row) for row in rows]
    if not body:
        return element("p", nothing, class_="quiet")
    head = [element("th", one.title, scope="col", class_=one.kind or None) for one in columns]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", head)),
        element("tbody", body),
        class_=kind or None,
    )


def _row(columns: Sequence[Column], row: Row) -> Html:
    cells = zip(columns, row, strict=True)
    return element("tr", [element("td", cell, class_=one.kind or None) for one, cell in cells])


def facts(told: Mapping[str, Child]) -> Html:
    """Names and values."""
    pairs = (element("div", element("dt", k), element("dd", v)) for k, v in told.items())
    return element("dl", pairs)


def items(children: Iterable[Child], kind: str = "") -> Html:
    return element("ul", [element("li", child) for child in children], class_=kind or None)


def badge(text: str, kind: str) -> Html:
    """A word that says more than its colour does."""
    return element("span", text, class_=f"badge {kind}")
