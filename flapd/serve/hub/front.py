"""Front: is the fleet well, who is not, and what happened last; and the nodes one by one."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

import msgspec

from flapd.serve.hub.items import FleetItem, FleetPort, NodeItem, StreamItem
from flapd.serve.items import FlapItem
from flapd.serve.job_items import IncidentItem
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.lists import flap_table, incident_table
from flapd.serve.page.parts import Column, badge, facts, items, section, table
from flapd.serve.page.words import (
    NOT_KNOWN,
    gpu_hours,
    length,
    listed,
    minute,
    plainly,
    port_link,
)
from flapd.serve.summary_item import SummaryItem
from flapd.store.summary import port_of_node

_UNREADABLE = "Not known: the history cannot be read."
_KINDS = {"healthy": "good", "unhealthy": "bad", "unknown": "warn"}
_SHOWN_NODES = 25


class Front(msgspec.Struct, frozen=True):
    """What the first screen tells of; what is None cannot be read now."""

    fleet: FleetItem
    flaps: list[FlapItem] | None
    incidents: list[IncidentItem] | None
    day: SummaryItem | None


def front_title(fleet: FleetItem) -> str:
    wrong = fleet.nodes.unhealthy + fleet.nodes.unknown
    return f"{wrong} nodes not healthy" if wrong or fleet.reasons else "Now"


def front(told: Front, sees_jobs: bool) -> Iterator[Html]:
    fleet = told.fleet
    yield section("now", "Now", _verdict(fleet), facts(_figures(told, sees_jobs)))
    if sees_jobs:
        found = told.incidents
        nothing = "No incident: nothing hurt a job that flapd knows of."
        shown = _unreadable() if found is None else incident_table(found, nothing)
        yield section("incidents", "Last incidents", shown, _more("incidents", "all incidents"))
    wrong = node_table(fleet.wrong[:_SHOWN_NODES], "Every node is heard, and none is unwell.")
    yield section("nodes", "Nodes that are not healthy", wrong, _more("nodes", "all nodes"))
    yield section("worst", "Ports that went down most, 24 h", _worst(told.day))
    found_flaps = told.flaps
    nothing = "No outage is in the history."
    shown = _unreadable() if found_flaps is None else flap_table(found_flaps, sees_jobs, nothing)
    yield section("flaps", "Last outages", shown, _more("flaps", "all outages"))


def _verdict(fleet: FleetItem) -> Iterator[Child]:
    nodes = fleet.nodes
    if fleet.reasons:
        yield element("p", "Not all of the fleet is known", class_="verdict bad")
        yield items(fleet.reasons, "concerns")
    elif nodes.unhealthy or nodes.unknown:
        text = f"{nodes.unhealthy} nodes are unhealthy, {nodes.unknown} are silent"
        yield element("p", text, class_="verdict bad" if nodes.unhealthy else "verdict warn")
    else:
        yield element("p", "Every node is healthy", class_="verdict good")


def _figures(told: Front, sees_jobs: bool) -> dict[str, Child]:
    fleet, day = told.fleet, told.day
    nodes, ports = fleet.nodes, fleet.ports
    figures: dict[str, Child] = {
        "Nodes healthy": f"{nodes.healthy:,} of {nodes.known:,}",
        "Ports up": f"{ports.up:,} of {ports.watched:,}",
        "Outages, 24 h": NOT_KNOWN if day is None else f"{day.flaps.outages:,}",
        "Down, 24 h": NOT_KNOWN if day is None else length(day.flaps.down_seconds),
        "Stream": _stream(fleet.stream),
    }
    if sees_jobs:
        count, incidents = fleet.incidents_open, None if day is None else day.incidents
        total = None if incidents is None else incidents.total
        figures |= {
            "Incidents open": NOT_KNOWN if count is None else f"{count:,}",
            "GPU-hours lost, 24 h": NOT_KNOWN if total is None else gpu_hours(total.gpu_seconds),
            "Price, 24 h": NOT_KNOWN if total is None else plainly(total.cost),
        }
    return figures


def _stream(stream: StreamItem) -> str:
    if stream.reason is not None:
        return stream.reason
    return f"{stream.waiting:,} events behind" if stream.waiting else "all of it is taken"


def _worst(day: SummaryItem | None) -> Html:
    if day is None:
        return _unreadable()
    columns = [Column("Port"), Column("Outages", "number"), Column("Downs", "number"),
               Column("Down for", "number"), Column("GPU-hours", "number wide")]  # fmt: skip
    rows = (
        (
            port_link(one.port),
            f"{one.flaps.outages:,}",
            f"{one.flaps.downs:,}",
            length(one.flaps.down_seconds),
            "-" if one.gpu_seconds is None else gpu_hours(one.gpu_seconds),
        )
        for one in day.worst_ports
    )
    return table("Ports by downs that the fabric caused", columns, rows, "No port went down.")


def _unreadable() -> Html:
    return element("p", _UNREADABLE)


def _more(path: str, text: str) -> Html:
    return element("p", element("a", text, href=f"/{path}"))


def node_table(nodes: Sequence[NodeItem], nothing: str) -> Html:
    columns = [Column("Node"), Column("Health"), Column("Why"), Column("Ports up", "number"),
               Column("Last heard (UTC)", "wide"), Column("Clock ahead", "number wide"),
               Column("flapd", "wide")]  # fmt: skip
    return table("Nodes", columns, map(_node, nodes), nothing)


def _node(node: NodeItem) -> list[Child]:
    ports = node.ports
    return [
        element("a", node.node, href=f"/nodes/{quote(node.node, safe='')}"),
        _health(node),
        " ".join(node.reasons),
        NOT_KNOWN if ports is None else f"{ports.up} of {ports.watched}",
        "never" if node.seen is None else minute(node.seen),
        NOT_KNOWN if node.clock is None else f"{node.clock.likely:+.2f} s",
        node.version or NOT_KNOWN,
    ]


def _health(node: NodeItem) -> Html:
    return badge(node.health, _KINDS.get(node.health, "warn"))


def node_page(
    node: NodeItem, ports: Sequence[FleetPort], flaps: Sequence[FlapItem], sees_jobs: bool
) -> Iterator[Html]:
    yield element("h1", node.node)
    yield section("node", "The node", facts(_node_facts(node)), items(node.reasons, "concerns"))
    yield section("ports", "Ports, as it told last", _port_table(ports))
    yield section("flaps", "Outages", flap_table(flaps, sees_jobs, "No outage is in the history."))


def _node_facts(node: NodeItem) -> dict[str, Child]:
    clock, waiting = node.clock, node.events_waiting
    told: dict[str, Child] = {
        "Health": _health(node),
        "Last heard (UTC)": "never" if node.seen is None else minute(node.seen),
        "flapd": node.version or NOT_KNOWN,
        "Clock ahead": NOT_KNOWN if clock is None else f"{clock.low:+.2f} to {clock.high:+.2f} s",
        "Events not told yet": NOT_KNOWN if waiting is None else f"{waiting:,}",
        "Boot": node.boot or NOT_KNOWN,
    }
    if node.jobs is not None:
        told["Jobs"] = listed(node.jobs)
    if node.blind_to is not None:
        told["Cannot see"] = listed(node.blind_to)
    return told


def _port_table(ports: Sequence[FleetPort]) -> Html:
    columns = [Column("Port"), Column("Link"), Column("Flaps 24 h", "number"), Column("Switch"),
               Column("Counted by", "wide"), Column("GUID", "wide")]  # fmt: skip
    return table("Ports", columns, map(_port, ports), "It has not told of any port.")


def _port(port: FleetPort) -> list[Child]:
    peer = port.peer
    switch = NOT_KNOWN if peer is None else f"{peer.switch} {peer.port or ''}".strip()
    link = element("a", port.port, href=f"/ports/{quote(port_of_node(port.node, port.port))}")
    return [
        link,
        _link(port),
        NOT_KNOWN if port.flaps_24h is None else str(port.flaps_24h),
        switch,
        port.witness.status,
        port.guid or "-",
    ]


def _link(port: FleetPort) -> Child:
    if not port.watched:
        return badge("not watched", "calm")
    words = {True: ("up", "good"), False: ("down", "bad"), None: ("not known", "warn")}
    flapping = [" ", badge("flapping", "bad")] if port.flapping else None
    planned = [" ", badge("maintenance", "calm")] if port.maintenance else None
    return [badge(*words[port.up]), flapping, planned]


def fleet_port_page(port: FleetPort, flaps: Sequence[FlapItem], sees_jobs: bool) -> Iterator[Html]:
    peer = port.peer
    told: dict[str, Child] = {
        "Node": element("a", port.node, href=f"/nodes/{quote(port.node, safe='')}"),
        "Link": _link(port),
        "Flaps, 24 h": NOT_KNOWN if port.flaps_24h is None else str(port.flaps_24h),
        "GUID": port.guid or NOT_KNOWN,
        "Switch": NOT_KNOWN if peer is None else peer.switch,
        "Switch port": (peer and peer.port) or NOT_KNOWN,
        "Counter of downs": port.witness.status,
    }
    yield element("h1", port_of_node(port.node, port.port))
    yield section("port", "The port, as its node told last", facts(told))
    yield section("flaps", "Outages", flap_table(flaps, sees_jobs, "No outage is in the history."))
