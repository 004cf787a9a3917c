"""`flapd replay`: a recording through the engine, faster than real time."""

from collections.abc import Iterator
from pathlib import Path

import msgspec

from flapd.cli.flaps import print_flaps
from flapd.cli.output import print_json
from flapd.core.engine import Engine, settings_in
from flapd.model.event import Event
from flapd.serve.items import FlapList, flap_item
from flapd.store.recording import Header, StateFrame, read_recording


def replay(path: Path, as_json: bool) -> int:
    """Prints the outages that the recording gives; the exit status."""
    found = FlapList([flap_item(outage) for outage in outages_of(path)])
    if as_json:
        print_json(msgspec.json.encode(found))
    else:
        print_flaps(found.items)
    return 0


def events_of(path: Path) -> Iterator[Event]:
    """Every event the engine tells of this recording, in order.

    After a restart of the agent the engine is told again what it was told and had not
    committed: of two events with the same id and revision the later is the one that was kept.
    """
    engine: Engine | None = None
    node = ""
    for entry in read_recording(path):
        if isinstance(entry, Header):
            node = entry.node
        elif isinstance(entry, StateFrame):
            engine = Engine(node, settings_in(entry.parts))
            engine.restore(entry.parts)
        elif engine is not None:
            yield from engine.step(entry)


def outages_of(path: Path) -> list[Event]:
    """The last revision of every outage, newest first."""
    outages: dict[str, Event] = {}
    for event in events_of(path):
        known = outages.get(event.id)
        if known is None or event.revision >= known.revision:
            outages[event.id] = event
    return sorted(outages.values(), key=lambda outage: -outage.down.earliest_unix_ns)
