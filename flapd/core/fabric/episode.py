"""Episode: how downs that follow each other closely become one flap, and what ends it."""

import msgspec
from msgspec.structs import replace

from flapd.core.fabric.reading import LinkReading
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.tally import BY_ITSELF
from flapd.model.event import Cause, Layer, Outage, Seen
from flapd.model.port import Port
from flapd.model.times import Edge


class Episode(msgspec.Struct):
    """The flap that goes on, or that the next down may still belong to."""

    outage: str
    down: Edge
    """Of the down that goes on, or was last."""
    first_value: int | None = None
    """What the witness reads once it has counted the first down; None where that is a guess."""
    known_down_ns: int | None = None
    """Since this moment the last down is known to go on without a break; None = not known."""
    earlier_downs: int = 0
    """Downs in it that had ended when the last began."""
    ended_ns_min: int = 0
    ended_ns_max: int = 0
    """Shortest and longest time of all downs in it that have ended."""


class Down(msgspec.Struct, frozen=True):
    """One down, or some that nobody saw apart, as it becomes known."""

    edge: Edge
    evidence: str
    count: int = 1
    at_least: bool = False
    seen: Seen = "observed"
    layer: Layer = "physical"
    cause: Cause = "link"
    first_value: int | None = None


def begun(name: str, down: Down, *, node: str, port: Port, boot: str, grace: bool) -> Outage:
    """A flap of its own."""
    return Outage(
        id=name,
        revision=0,
        node=node,
        key=port.key,
        port=port.name,
        guid=port.guid,
        member=port.member,
        boot=boot,
        kind="flap",
        status="open",
        cause=down.cause,
        seen=down.seen,
        layer=down.layer,
        down=down.edge,
        up=None,
        count=down.count,
        count_at_least=down.at_least,
        settled=False,
        evidence=(down.evidence,),
        recorded_ns=down.edge.latest_ns,
        grace=grace,
    )


def takes(flap: Outage, down: Down, settings: FlapSettings) -> bool:
    """Whether this down is one more of that flap, which has ended so far."""
    if flap.up is None or "while_away" in {flap.seen, down.seen}:
        return False
    is_alike = down.cause == flap.cause or {down.cause, flap.cause} <= BY_ITSELF
    begins_ns = down.edge.earliest_ns
    return (
        is_alike
        and max(0, begins_ns - flap.up.latest_ns) < settings.merge_within.ns
        and begins_ns < flap.down.latest_ns + settings.burst_max.ns
    )


def with_down(flap: Outage, down: Down) -> Outage:
    """The flap goes on; what the counter tells late may have been before all that was seen."""
    first = _reaching_back(flap.down, down.edge.earliest_ns)
    is_physical = "physical" in {flap.layer, down.layer}
    return replace(
        flap,
        status="open",
        down=first,
        up=None,
        down_ns_min=None,
        down_ns_max=None,
        after=None,
        settled=False,
        seen="observed" if "observed" in {flap.seen, down.seen} else flap.seen,
        layer="physical" if is_physical else "logical",
        cause=_worse(flap.cause, down.cause),
        count=flap.count + down.count,
        count_at_least=flap.count_at_least or down.at_least,
        evidence=with_evidence(flap.evidence, down.evidence),
    )


def _worse(one: Cause, other: Cause) -> Cause:
    """Where the link went as well, the flap is the link's."""
    return "link" if "link" in {one, other} else one


def ended(
    flap: Outage, episode: Episode, up: Edge, settings: FlapSettings
) -> tuple[Outage, Episode]:
    """The port came up: the flap as it stands if no more downs follow."""
    shortest_ns = 0
    if episode.known_down_ns is not None:
        shortest_ns = max(0, up.earliest_ns - episode.known_down_ns)
    longest_ns = up.latest_ns - episode.down.earliest_ns
    episode = replace(
        episode,
        ended_ns_min=episode.ended_ns_min + shortest_ns,
        ended_ns_max=episode.ended_ns_max + longest_ns,
        known_down_ns=None,
    )
    is_drop = flap.kind == "drop" or shortest_ns >= settings.drop_after.ns
    flap = replace(
        flap,
        status="closed",
        kind="drop" if is_drop else "flap",
        up=up,
        down_ns_min=episode.ended_ns_min,
        down_ns_max=episode.ended_ns_max,
    )
    return flap, episode


def narrowed(
    flap: Outage, episode: Episode, reading: LinkReading, may_lag_ns: int
) -> tuple[Outage, Edge]:
    """What a reading that comes late still tells of the last down: its bounds, never more.

    Only of a flap with one down: of several it is not known to which it belongs.
    """
    down, up = episode.down, flap.up
    if flap.count != 1 or reading.before_ns < down.earliest_ns:
        return flap, down
    value, first = reading.witness, episode.first_value
    if value is not None and first is not None:
        if value >= first:
            down = _no_later(down, reading.after_ns)
        else:
            down = _no_earlier(down, reading.before_ns - may_lag_ns)
    if reading.up is False:
        down = _no_later(down, reading.after_ns)
        up = up and _no_earlier(up, reading.before_ns)
    elif reading.up and reading.before_ns >= down.latest_ns:
        up = up and _no_later(up, reading.after_ns)
    return _bounded(flap, down, up), down


def narrowed_by_count(
    flap: Outage, episode: Episode, reading: LinkReading, counted: int | None
) -> tuple[Outage, Edge]:
    """The same of a reading whose count of downs says when it was, and tells up and down with it.

    `counted` are the downs after that of the flap that it had counted; None: not even that.
    """
    down, up = episode.down, flap.up
    if flap.count != 1:
        return flap, down
    if counted is None:
        down = _no_earlier(down, reading.before_ns)
    else:
        down = _no_later(down, reading.after_ns)
    if counted == 0 and reading.up:
        up = up and _no_later(up, reading.after_ns)
    elif counted == 0 and reading.up is False:
        up = up and _no_earlier(up, reading.before_ns)
    return _bounded(flap, down, up), down


def _bounded(flap: Outage, down: Edge, up: Edge | None) -> Outage:
    """With these edges, of its only down, which the up came after."""
    if up is None:
        return replace(flap, down=down)
    up = _no_earlier(up, down.earliest_ns)
    return replace(flap, down=down, up=up, down_ns_max=up.latest_ns - down.earliest_ns)


def _reaching_back(edge: Edge, ns: int) -> Edge:
    return replace(edge, earliest_ns=min(edge.earliest_ns, ns))


def _no_earlier(edge: Edge, ns: int) -> Edge:
    return replace(edge, earliest_ns=min(max(edge.earliest_ns, ns), edge.latest_ns))


def _no_later(edge: Edge, ns: int) -> Edge:
    return replace(edge, latest_ns=max(min(edge.latest_ns, ns), edge.earliest_ns))


def with_evidence(evidence: tuple[str, ...], source: str) -> tuple[str, ...]:
    return evidence if source in evidence else (*evidence, source)
