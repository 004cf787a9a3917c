"""Pages: all that a query finds, however many pages it is."""

from collections.abc import Callable, Iterator
from typing import Protocol, TypeVar

import msgspec

_Item = TypeVar("_Item")
_Query = TypeVar("_Query", bound=msgspec.Struct)


class Paged(Protocol[_Item]):
    @property
    def items(self) -> list[_Item]: ...
    @property
    def next(self) -> str | None: ...


def every(find: Callable[[_Query], Paged[_Item]], query: _Query) -> Iterator[_Item]:
    """As the pages have them; a page is read once the one before was taken."""
    while True:
        page = find(query)
        yield from page.items
        if page.next is None:
            return
        query = msgspec.structs.replace(query, cursor=page.next)
