"""Markup: elements whose text is escaped unless it is markup already."""

import html
from collections.abc import Iterable
from typing import TypeAlias


class Html(str):
    """Markup that may be sent as it is: only `element`, `join` and this module's texts make it."""

    __slots__ = ()


Child: TypeAlias = "str | int | Iterable[Child] | None"
"""None is nothing; a str that is no Html is text from anywhere, however hostile."""
Attribute: TypeAlias = "str | int | float | bool | None"
"""None and False leave the attribute out."""

_EMPTY = frozenset({"input", "link", "meta", "br"})


def element(name: str, /, *children: Child, **attributes: Attribute) -> Html:
    """`class_` is the attribute class, `data_live` is data-live."""
    opening = f"<{name}{''.join(_attribute(*one) for one in attributes.items())}>"
    return Html(opening if name in _EMPTY else f"{opening}{join(children)}</{name}>")


def join(children: Child) -> Html:
    if children is None:
        return Html()
    if isinstance(children, Html):
        return children
    if isinstance(children, str | int):
        return Html(_escaped(str(children)))
    return Html("".join(join(child) for child in children))


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    name = name.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{_escaped(str(value))}"'


def _escaped(text: str) -> str:
    """Without what would turn around the direction of the text after it, or steer anything."""
    if not text.isprintable():
        text = "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)
    return html.escape(text)
