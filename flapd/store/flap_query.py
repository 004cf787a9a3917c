"""FlapQuery: which outages of the history."""

import sqlite3

import msgspec

from flapd.model.event import Cause, Kind, Layer, Outage, Seen, Status
from flapd.store.black_box import with_black_box
from flapd.store.body import decoded_as
from flapd.store.cursor import encode_cursor
from flapd.store.flap_row import end_unix_ns
from flapd.store.incident_links import FLAPS_OF_JOB, FlapLoss, losses_of
from flapd.store.shelf import FLAPS, Condition, Wish, find, position_of
from flapd.store.span import length_class


class FlapQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filters that all must hold; None = any. The span selects what overlaps it."""

    since_unix_ns: int | None = None
    until_unix_ns: int | None = None
    node: str | None = None
    port: str | None = None
    guid: str | None = None
    kind: Kind | None = None
    status: Status | None = None
    cause: Cause | None = None
    layer: Layer | None = None
    seen: Seen | None = None
    min_down_ns: int | None = None
    """It can have been down this long; what is not known to have ended counts."""
    job: str | None = None
    """An incident of this job names it."""
    limit: int = 100
    cursor: str | None = None
    """`next` of the page before."""


class FlapPage(msgspec.Struct, frozen=True):
    """Outages newest first; `next` is None on the last page."""

    items: list[Outage]
    next: str | None
    with_black_box: frozenset[str] = frozenset()
    """Ids of those of which samples are kept."""
    losses: dict[str, FlapLoss] = {}
    """Of those that belong to incidents, by id."""


def matches(query: FlapQuery, outage: Outage) -> bool:
    """Whether an outage that is not in the history is one that was asked for.

    Which job it hit is known of none of them.
    """
    wanted = {name: getattr(query, name) for name in (*FLAPS.classes, *FLAPS.keys)}
    return (
        query.job is None
        and all(value is None or value == getattr(outage, name) for name, value in wanted.items())
        and (query.since_unix_ns is None or end_unix_ns(outage) >= query.since_unix_ns)
        and (query.until_unix_ns is None or outage.down.earliest_unix_ns <= query.until_unix_ns)
        and (
            query.min_down_ns is None
            or outage.down_ns_max is None
            or outage.down_ns_max >= query.min_down_ns
        )
    )


def find_flaps(connection: sqlite3.Connection, query: FlapQuery) -> FlapPage:
    """One page; FlapdError where the cursor is none of ours."""
    shelf = FLAPS if query.job is None else FLAPS_OF_JOB
    rows, more = find(connection, shelf, query, _wish(query))
    ids = [flap_id for _down, flap_id, _body in rows]
    return FlapPage(
        [decoded_as(Outage, body) for _down, _id, body in rows],
        encode_cursor(position_of(rows[-1])) if more and rows else None,
        with_black_box(connection, ids),
        losses_of(connection, ids),
    )


def _wish(query: FlapQuery) -> Wish:
    facets, rows = Condition(), Condition()
    if query.min_down_ns is not None:
        # The length of what was lost is not known: its class tells when it was lost.
        facets.add("(length_class >= ? OR status = 'lost')", length_class(query.min_down_ns))
    rows.add("(down_ns_max IS NULL OR down_ns_max >= ?)", query.min_down_ns)
    rows.add("link_job = ?", query.job)
    return Wish(facets, rows)
