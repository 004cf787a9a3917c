"""WatchFeed: what an agent tells of now, anew whenever its stream says that something happened."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from flapd.cli.answers import FlapAnswer, FlapsAnswer
from flapd.cli.client import NoAgentError, ask, follow
from flapd.cli.job_answers import IncidentAnswer, IncidentsAnswer
from flapd.cli.look import Now, look
from flapd.cli.of_node import of_fleet, tells_of_many, with_node
from flapd.cli.output import decoded
from flapd.cli.target import Target
from flapd.model.errors import CouldNotFindOutError, FlapdError

EVERY_SECONDS = 2.0
EVERY_SECONDS_WITH_STREAM = 5.0
LEAST_SECONDS = 0.5
"""Between two looks, however much happens."""

_MOST = 50
_QUIET_SECONDS = 40.0
"""An agent says something every 15 s."""


class Seen(NamedTuple):
    now: Now
    flaps: list[FlapAnswer] | None
    """Of the last 24 h, the newest first; None: not told."""
    incidents: list[IncidentAnswer] | None
    not_told: list[str]
    """Why not."""
    is_more: bool
    """There were more than these."""
    unix_ns: int


class View(NamedTuple):
    """The last that was seen, and whether it still is what is."""

    seen: Seen
    is_live: bool = True
    """The stream is open: what happens is shown as it does."""
    gone: str | None = None
    """Why nothing newer can be seen."""
    gone_unix_ns: int = 0


def look_at_all(targets: Sequence[Target]) -> Seen:
    """Raises as `ask` does."""
    of_many = tells_of_many(targets)
    now, not_told = look(targets, of_many=of_many), list[str]()
    flaps, incidents = None, None
    with _unless_told_why(not_told):
        flaps = decoded(_of_a_day(targets, "flaps"), FlapsAnswer)
    with _unless_told_why(not_told):
        incidents = decoded(_of_a_day(targets, "incidents"), IncidentsAnswer)
    return Seen(
        now,
        None if flaps is None else [with_node(one) if of_many else one for one in flaps.items],
        None if incidents is None else [of_fleet(one) for one in incidents.items],
        not_told,
        any(one is not None and one.next is not None for one in (flaps, incidents)),
        time.time_ns(),
    )


def _of_a_day(targets: Sequence[Target], what: str) -> bytes:
    return ask(targets, f"/api/v1/{what}", {"since": "24h", "limit": _MOST})


@contextmanager
def _unless_told_why(not_told: list[str]) -> Iterator[None]:
    """An agent may be there and not tell this: no history, no leave."""
    try:
        yield
    except NoAgentError:
        raise
    except CouldNotFindOutError as error:
        not_told.append(str(error))


class WatchFeed:
    """`view` is the newest; `wake` is called on another thread whenever it is another."""

    def __init__(self, targets: Sequence[Target], first: Seen, wake: Callable[[], None]) -> None:
        self.view = View(first, is_live=False)
        self._targets = targets
        self._wake = wake
        self._is_live = False
        self._more = threading.Event()
        self._ended = threading.Event()
        for run in (self._follow, self._look):
            threading.Thread(target=run, daemon=True).start()

    def close(self) -> None:
        """No look begins after this; one that waits for an answer is left to end by itself."""
        self._ended.set()
        self._more.set()

    def _follow(self) -> None:
        while not self._ended.is_set():
            try:
                for line in follow(self._targets, "/api/v1/stream", _QUIET_SECONDS):
                    self._heard(line)
            except FlapdError:
                pass  # looking says what is wrong, if anything is
            self._is_live = False
            self._more.set()
            self._ended.wait(EVERY_SECONDS)

    def _heard(self, line: bytes) -> None:
        if not line or line.startswith(b"event:"):
            self._is_live = True
            self._more.set()

    def _look(self) -> None:
        while not self._ended.is_set():
            self._more.wait(EVERY_SECONDS_WITH_STREAM if self._is_live else EVERY_SECONDS)
            self._more.clear()
            self.view = self._looked()
            self._wake()
            self._ended.wait(LEAST_SECONDS)

    def _looked(self) -> View:
        try:
            return View(look_at_all(self._targets), self._is_live)
        except FlapdError as error:
            last = self.view
            since = last.gone_unix_ns if last.gone else time.time_ns()
            return View(last.seen, False, str(error), since)
