"""The feed of `flapd watch`: by the stream, and without it."""

import queue
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager

from flapd.cli.client import follow
from flapd.cli.target import SocketTarget
from flapd.cli.watch_feed import View, WatchFeed, look_at_all
from flapd.serve.stream import MOST_STREAMS
from tests.cli.here import Here, agent_at, recent
from tests.serve.parts import view

PATIENCE_SECONDS = 20
PORTS = (view(errors={}),)


class Watched:
    """Each view of a feed, as it comes."""

    def __init__(self, here: Here) -> None:
        self.targets = [SocketTarget(here.directory / "flapd.sock")]
        self._woken: queue.SimpleQueue[None] = queue.SimpleQueue()
        self.feed = WatchFeed(self.targets, look_at_all(self.targets), self._wake)

    def _wake(self) -> None:
        self._woken.put(None)

    def next(self) -> View:
        self._woken.get(timeout=PATIENCE_SECONDS)
        return self.feed.view

    def first(self, *, live: bool) -> View:
        while (view := self.next()).is_live is not live:
            pass
        return view


@contextmanager
def watched(here: Here) -> Iterator[Watched]:
    found = Watched(here)
    with closing(found.feed):
        yield found


def flaps_of(view: View) -> list[str]:
    return [flap.id for flap in view.seen.flaps or ()]


def test_an_event_brings_the_next_view_before_its_time(here: Here) -> None:
    with agent_at(here, ports=PORTS) as (agent, _), watched(here) as found:
        found.first(live=True)
        agent.happens(recent("f1"))
        while not flaps_of(view := found.next()):
            pass

    assert flaps_of(view) == ["f1"]
    assert view.is_live


def test_where_no_stream_can_be_had_it_asks(here: Here) -> None:
    target = [SocketTarget(here.directory / "flapd.sock")]
    with agent_at(here, ports=PORTS) as (agent, _), ExitStack() as streams:
        for _number in range(MOST_STREAMS):
            stream = follow(target, "/api/v1/stream", PATIENCE_SECONDS)
            next(stream)
            streams.callback(stream.close)  # type: ignore[attr-defined]
        with watched(here) as found:
            asked = found.next()
            agent.happens(recent("f1"))
            while not flaps_of(view := found.next()):
                pass
            streams.close()
            agent.happens(recent("f2"))  # the server sees who has gone when it tells them something
            again = found.first(live=True)

    assert not asked.is_live
    assert (flaps_of(view), view.is_live) == (["f1"], False)
    assert sorted(flaps_of(again)) == ["f1", "f2"]


def test_the_time_since_when_nobody_answers_stays(here: Here) -> None:
    with agent_at(here, (recent("f1"),), PORTS):
        found = Watched(here)
        found.first(live=True)
    with closing(found.feed):
        while (gone := found.next()).gone is None:
            pass
        still = found.next()
        with agent_at(here, (), PORTS):
            back = found.first(live=True)

    assert still.gone is not None
    assert still.gone_unix_ns == gone.gone_unix_ns
    assert flaps_of(still) == ["f1"]
    assert still.seen.unix_ns < gone.gone_unix_ns
    assert back.gone is None
