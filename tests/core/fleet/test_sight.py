"""Since when and up to when the downs of a port are known, by what its node told."""

from typing import Any

from msgspec.structs import replace

from flapd.core.fleet import Nodes
from flapd.core.fleet.sight import Sight
from flapd.core.incident.evidence import Watched
from flapd.model.event import PortChange
from flapd.model.times import SECOND_NS
from tests.core.fleet.fleets import beat, key, node, outage
from tests.core.incident.parts import BEGIN, ns

PORT = key(0, 0)


def change(at: float, what: Any, note: str = "", revision: int = 1) -> PortChange:
    return PortChange(
        id="port-0",
        revision=revision,
        node=node(0),
        key=PORT,
        port="mlx5_0/1",
        guid=None,
        change=what,
        note=note,
        recorded_ns=round(at * SECOND_NS),
        wall_offset_ns=BEGIN * SECOND_NS,
    )


def seen(*changes: PortChange, nodes: Nodes | None = None) -> Watched | None:
    sight = Sight()
    for one in changes:
        sight.take(one)
    return dict(sight.watched(node(0), [PORT], nodes or Nodes())).get(PORT)


def alive(at: float, readable: bool = True) -> Nodes:
    nodes, one = Nodes(), beat(0, at)
    ports = tuple(replace(port, readable=readable) for port in one.ports)
    nodes.beat(replace(one, ports=ports), ns(at))
    return nodes


def test_from_the_first_word_to_the_last_heartbeat() -> None:
    assert seen(change(10.0, "found"), nodes=alive(500.0)) == Watched(ns(10.0), ns(500.0))


def test_a_node_that_told_nothing_yet_is_watched_since_its_heartbeat() -> None:
    assert seen(nodes=alive(500.0)) == Watched(ns(500.0), ns(500.0))
    assert seen() is None


def test_a_witness_that_could_not_be_read_hides_what_was_before_it_could_again() -> None:
    lost = change(100.0, "witness", "unreadable", revision=2)
    back = change(200.0, "witness", "live", revision=3)
    found = change(10.0, "found")

    assert seen(found, lost, nodes=alive(500.0)) == Watched(ns(10.0), ns(100.0))
    assert seen(found, lost, back, nodes=alive(500.0)) == Watched(ns(200.0), ns(500.0))
    assert seen(back, lost, found, lost, nodes=alive(500.0)) == Watched(ns(200.0), ns(500.0))


def test_a_port_that_is_gone_is_not_watched_any_more() -> None:
    told = [change(10.0, "found"), change(100.0, "gone", revision=2)]

    assert seen(*told, nodes=alive(500.0)) == Watched(ns(10.0), ns(100.0))


def test_a_port_that_cannot_be_read_now_is_dark_until_its_node_says_since_when() -> None:
    dark = alive(500.0, readable=False)

    assert seen(change(10.0, "found"), nodes=dark) is None
    lost = change(100.0, "witness", "unreadable", revision=2)
    assert seen(change(10.0, "found"), lost, nodes=dark) == Watched(ns(10.0), ns(100.0))


def test_a_port_that_is_not_among_those_of_its_node_is_gone_also_where_that_was_not_heard() -> None:
    """Of a node that has just begun, and knows none of its ports, that is no word of any."""
    without, none = Nodes(), Nodes()
    without.beat(replace(beat(0, 500.0), ports=beat(0, 500.0).ports[1:]), ns(500.0))
    none.beat(replace(beat(0, 500.0), ports=()), ns(500.0))

    assert seen(change(10.0, "found"), nodes=without) is None
    assert seen(change(10.0, "found"), nodes=none) == Watched(ns(10.0), ns(500.0))


def test_what_any_event_tells_shows_that_its_node_watched() -> None:
    sight = Sight()
    sight.take(outage(0, 50.0, 10.0, recorded_ns=61 * SECOND_NS))

    assert dict(sight.watched(node(0), [PORT], Nodes())) == {PORT: Watched(ns(61.0), ns(61.0))}
