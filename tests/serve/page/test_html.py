"""Markup: whatever text says, it stays text."""

from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st

from flapd.serve.page.html import Html, element, join


class Parsed(HTMLParser):
    """What a browser would make of it, as far as elements, attributes and text go."""

    def __init__(self, markup: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, list[tuple[str, str | None]]]] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, attrs))

    def handle_data(self, data: str) -> None:
        self.text += data


def harmless(text: str) -> str:
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)


@given(st.text(), st.text())
def test_any_text_comes_back_as_text_and_no_element_comes_of_it(text: str, title: str) -> None:
    parsed = Parsed(element("p", "a ", text, title=title))

    assert parsed.elements == [("p", [("title", harmless(title))])]
    assert parsed.text == harmless(f"a {text}")


def test_what_turns_around_the_text_after_it_is_replaced() -> None:
    assert join("gpj.\u202eexe\x1b[31m\x00") == "gpj.\ufffdexe\ufffd[31m\ufffd"


def test_what_is_markup_already_is_not_escaped_again() -> None:
    assert element("p", [Html("<b>"), "<b>"]) == "<p><b>&lt;b&gt;</p>"


def test_attributes_may_be_left_out_or_bare_and_have_hyphens() -> None:
    made = element("input", class_="a", data_live=True, href=None, hidden=False)
    assert made == '<input class="a" data-live>'
