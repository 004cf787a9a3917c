"""One port: what it is, how it is, its last samples, its outages; and one outage of it."""

from collections.abc import Iterator, Mapping, Sequence

from flapd.serve.incident_words import words
from flapd.serve.items import FlapItem, PortItem
from flapd.serve.page.concerns import rate
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.lists import flap_table, link
from flapd.serve.page.parts import Column, facts, section, table
from flapd.serve.page.ticket import ticket
from flapd.serve.page.words import (
    NOT_KNOWN,
    downs,
    gpu_hours,
    incident_link,
    lasted,
    moment,
    port_link,
)


def port_page(
    port: PortItem, flaps: Sequence[FlapItem], sees_jobs: bool, ring: Child
) -> Iterator[Html]:
    yield element("h1", port.port)
    yield section("port", "The port", facts(_link_facts(port)), facts(_identity(port)))
    yield section("ring", "The last minute", ring)
    yield section("flaps", "Outages", flap_table(flaps, sees_jobs, "No outage is in the history."))
    yield section("sources", "Sources and counters", _sources(port), _counters(port))
    yield from ticket(flaps, {port.port: port})


def _link_facts(port: PortItem) -> dict[str, Child]:
    states = ", ".join(filter(None, [port.state, port.phys_state]))
    return {
        "Link": link(port),
        "State": states or NOT_KNOWN,
        "Rate": [rate(port.rate_gbps), f" {port.width}" if port.width else None],
        "Expected": rate(port.expected_rate_gbps),
        "Flaps, 24 h": NOT_KNOWN if port.flaps_24h is None else str(port.flaps_24h),
        "Penalty": NOT_KNOWN if port.penalty is None else f"{port.penalty:,.0f}",
        "Last down (UTC)": "none seen" if port.last_down is None else moment(port.last_down),
        "Bit error ratio": NOT_KNOWN
        if port.bit_error_ratio is None
        else f"{port.bit_error_ratio:.2g}",
        "Downs counted by": _witness(port),
    }


def _witness(port: PortItem) -> str:
    witness = port.witness
    if witness.name is None:
        return "no counter"
    value = NOT_KNOWN if witness.value is None else f"{witness.value:,}"
    return f"{witness.name} = {value} ({witness.status})"


def _identity(port: PortItem) -> dict[str, Child]:
    peer, module = port.peer, port.module
    return {
        "GUID": port.guid or NOT_KNOWN,
        "PCI": port.pci or NOT_KNOWN,
        "Driver": port.driver or NOT_KNOWN,
        "Link layer": port.link_layer,
        "Netdev": port.netdev or "-",
        "Members": ", ".join(port.members) or "-",
        "Switch": (peer and peer.switch) or NOT_KNOWN,
        "Switch port": (peer and peer.port) or NOT_KNOWN,
        "Module": _module(port),
        "Serial": (module and module.serial) or NOT_KNOWN,
        "Repaired": "-" if port.repaired is None else f"{port.repaired.time}: {port.repaired.note}",
    }


def _module(port: PortItem) -> str:
    module = port.module
    told = (module.vendor, module.part) if module is not None else ()
    return " ".join(filter(None, told)) or NOT_KNOWN


def _sources(port: PortItem) -> Html:
    columns = [Column("Source"), Column("Works, or why not")]
    return table("Sources", columns, port.sources.items(), "No source is known.", "narrow")


def _counters(port: PortItem) -> Html:
    columns = [Column("Counter"), Column("Value", "number"), Column("")]
    rows = (
        (name, "not readable" if value is None else f"{value:,}", _note(port, name))
        for name, value in sorted(port.counters.items())
    )
    shown = table("Counters as read last", columns, rows, "No counter is known.", "narrow")
    return element("details", element("summary", f"{len(port.counters)} counters"), shown)


def _note(port: PortItem, name: str) -> str:
    return "at its stop: counts no further" if name in port.saturated else ""


def flap_page(
    flap: FlapItem, port: PortItem | None, sees_jobs: bool, black_box: Child
) -> Iterator[Html]:
    yield element("h1", f"{flap.port}: {words(flap.kind)}")
    yield section("flap", "The outage", facts(_flap_facts(flap, sees_jobs)))
    yield section("black-box", "Black box: the samples around it", black_box)
    yield from ticket([flap], {} if port is None else {flap.port: port})


def _flap_facts(flap: FlapItem, sees_jobs: bool) -> Mapping[str, Child]:
    told: dict[str, Child] = {
        "Port": [port_link(flap.port), f" {flap.member}" if flap.member else None],
        "Down (UTC)": moment(flap.down),
        "Up (UTC)": "not yet" if flap.status == "open" else moment(flap.up),
        "Down for": lasted(flap),
        "Downs": downs(flap),
        "Cause": words(flap.cause),
        "Reason": flap.reason or NOT_KNOWN,
        "Layer": flap.layer,
        "Seen": words(flap.seen),
        "Evidence": ", ".join(flap.evidence) or "none",
        "Rate after": NOT_KNOWN if flap.after is None else rate(flap.after.rate_gbps),
        "Soon after a boot": "yes" if flap.grace else "no",
        "On disk": "yes" if flap.durable else "not yet",
        "Id": flap.id,
    }
    if sees_jobs:
        told["GPU-hours"] = gpu_hours(flap.gpu_seconds)
        links = [[incident_link(one, one), " "] for one in flap.incidents]
        told["Incidents"] = links or "none"
    return told
