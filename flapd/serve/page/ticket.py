"""Ticket: what the people who replace cables need, as text to be copied."""

from collections.abc import Iterator, Mapping, Sequence

from flapd.serve.items import FlapItem, PortItem
from flapd.serve.job_items import IncidentDetail
from flapd.serve.page.html import Html, element
from flapd.serve.page.words import NOT_KNOWN, downs, lasted, money

_MOST_OUTAGES = 10


def ticket(
    flaps: Sequence[FlapItem],
    ports: Mapping[str, PortItem],
    incident: IncidentDetail | None = None,
) -> Iterator[Html]:
    """One for all ports of these outages; nothing where there are none."""
    if not flaps:
        return
    text = "\n".join(_text(flaps, ports, incident))
    yield element(
        "section",
        element("h2", "For a cable ticket", id="ticket-title"),
        element(
            "textarea", text, id="ticket", readonly=True, rows=min(24, text.count("\n") + 1),
            aria_labelledby="ticket-title", spellcheck="false",
        ),
        element("p", element("button", "Copy the text", type="button", data_copy="ticket")),
        aria_labelledby="ticket-title",
    )  # fmt: skip


def _text(
    flaps: Sequence[FlapItem], ports: Mapping[str, PortItem], incident: IncidentDetail | None
) -> Iterator[str]:
    for name in dict.fromkeys(flap.port for flap in flaps):
        own = [flap for flap in flaps if flap.port == name]
        yield from _of_port(name, ports.get(name))
        yield f"Outages ({len(own)}), UTC:"
        for flap in own[:_MOST_OUTAGES]:
            reason = f", {flap.reason}" if flap.reason else ""
            at = flap.down.earliest[:23].replace("T", " ")
            yield f"  {at}  down {lasted(flap)}, {downs(flap)} x, {flap.cause}{reason}  {flap.id}"
        if len(own) > _MOST_OUTAGES:
            yield f"  and {len(own) - _MOST_OUTAGES} more"
        yield ""
    if incident is not None:
        yield f"Incident: {incident.id}, {incident.verdict}, {money(incident.cost)}"


def _of_port(name: str, port: PortItem | None) -> Iterator[str]:
    if port is None:
        yield f"Port:    {name} (not found any more)"
        return
    peer, module = port.peer, port.module
    address = ", ".join(filter(None, [port.guid, port.pci, port.netdev]))
    yield f"Port:    {name} ({port.link_layer}; {address})"
    switch, far_port = (peer.switch, peer.port) if peer else (None, None)
    yield f"Switch:  {_known(switch)}, port {_known(far_port)}"
    parts = (module.vendor, module.part) if module else ()
    yield f"Module:  {' '.join(filter(None, parts)) or NOT_KNOWN}"
    yield f"Serial:  {_known(module.serial if module else None)}"


def _known(value: str | None) -> str:
    return value or NOT_KNOWN
