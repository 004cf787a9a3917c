"""`flapd replay`: a recording through the engine, faster than real time."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from flapd.cli.answers import FlapsAnswer
from flapd.cli.flaps import print_flaps
from flapd.cli.given import regular
from flapd.cli.output import decoded, note, print_json
from flapd.cli.progress import progress
from flapd.core.engine import CheckpointError, Engine
from flapd.model.errors import FlapdError
from flapd.model.event import Event, Outage
from flapd.serve.items import FlapList
from flapd.serve.told import flap_item
from flapd.store.recording import Header, StateFrame, read_recording


def replay(path: Path, as_json: bool, utc: bool) -> int:
    """Prints the outages that the recording gives; the exit status."""
    began = time.monotonic()
    with progress("replaying") as passed, _understood(path):
        of_bytes = path.stat().st_size if regular(path).is_file() else 0
        recording = Replay(path, lambda done_bytes: passed(done_bytes, of_bytes))
        outages = [flap_item(outage) for outage in recording.outages()]
        body = msgspec.json.encode(FlapList(outages))
    seconds = time.monotonic() - began
    note(f"{recording.observations} observations replayed in {seconds:.2f} s")
    if as_json:
        print_json(body)
    else:
        print_flaps(decoded(body, FlapsAnswer).items, utc)
    return 0


@contextmanager
def _understood(path: Path) -> Iterator[None]:
    try:
        yield
    except CheckpointError as error:
        raise FlapdError(f"{path} cannot be understood: of the state in it, {error}") from error
    except RecursionError as error:
        raise FlapdError(f"{path} cannot be understood: it is nested too deeply") from error


class Replay:
    """One run of a recording through the engine."""

    def __init__(self, path: Path, passed: Callable[[int], None] = lambda _bytes: None) -> None:
        """`passed` is told how many bytes of the recording are behind."""
        self.observations = 0
        self._path = path
        self._passed = passed

    def outages(self) -> list[Outage]:
        """The last revision of every outage, newest first.

        After a restart of the agent the engine is told again what it was told and had not
        committed: of two events with the same id and revision the later is the one kept.
        """
        outages: dict[str, Outage] = {}
        for event in self.events():
            if not isinstance(event, Outage):
                continue
            known = outages.get(event.id)
            if known is None or event.revision >= known.revision:
                outages[event.id] = event
        return sorted(outages.values(), key=lambda outage: -outage.down.earliest_unix_ns)

    def events(self) -> Iterator[Event]:
        """Every event in the order in which the engine told it."""
        engine: Engine | None = None
        node = ""
        for entry in read_recording(self._path, self._passed):
            if isinstance(entry, Header):
                node = entry.node
            elif isinstance(entry, StateFrame):
                engine = Engine.of_recording(node, entry.parts)
            elif engine is not None:
                self.observations += 1
                yield from engine.step(entry)
