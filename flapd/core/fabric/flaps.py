"""Flaps: the outages of one port as records, from the first down to the last revision told."""

from msgspec.structs import replace

from flapd.core.fabric.book import Book
from flapd.core.fabric.episode import (
    Down,
    Episode,
    begun,
    ended,
    narrowed,
    narrowed_by_count,
    takes,
    with_down,
    with_evidence,
)
from flapd.core.fabric.reading import LinkReading
from flapd.core.fabric.reasons import Reason, explained, explains, still_waiting
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.tally import BY_ITSELF
from flapd.model.event import After, Cause, Outage
from flapd.model.port import Port
from flapd.model.times import Edge


class Flaps:
    """Changes the outages in a book and remembers which of them are to be told."""

    def __init__(
        self, node: str, port: Port, book: Book, *, boot: str, settings: FlapSettings
    ) -> None:
        self.port = port
        self.boot = boot
        self.wall_offset_ns = 0
        self._node = node
        self._book = book
        self._settings = settings
        self._counter = port.witness
        self._changed: set[str] = set()

    @property
    def going_on(self) -> Outage | None:
        """The outage that is open."""
        episode = self._book.episode
        outage = self._book.outages[episode.outage] if episode is not None else None
        return outage if outage is not None and outage.status == "open" else None

    @property
    def _episode(self) -> Episode:
        assert self._book.episode is not None
        return self._book.episode

    def count_by(self, counter: str | None) -> None:
        """From now on by this one, or anew: what it counts says nothing of earlier downs."""
        self._counter = counter
        if self._book.episode is not None:
            self._book.episode.first_value = None

    def go_down(self, down: Down, at_ns: int) -> Outage:
        """A flap of its own, or one down more of the last."""
        book, episode = self._book, self._book.episode
        if episode is not None:
            flap = book.outages[episode.outage]
            if takes(flap, down, self._settings):
                assert flap.up is not None
                # What was taken for one down may have been two, with a time up in between.
                in_doubt_ns = max(0, flap.up.earliest_ns - down.edge.earliest_ns)
                episode.ended_ns_min = max(0, episode.ended_ns_min - in_doubt_ns)
                episode.down, episode.earlier_downs = down.edge, flap.count
                episode.known_down_ns = _known_down_ns(down)
                return self.put(with_down(flap, down))
            self.end()
        return self._open(down, at_ns)

    def go_down_uncounted(self, cause: Cause, edge: Edge, evidence: str) -> None:
        """A down that no counter is asked about: it goes into no total."""
        outage = self._open(Down(edge, evidence, cause=cause), edge.latest_ns)
        self.put(replace(outage, settled=True))

    def _open(self, down: Down, at_ns: int) -> Outage:
        book, port = self._book, self.port
        prefix = f"{self._node}|{port.key}|{self.boot}"
        name = book.names.name(prefix, self._counter, down.first_value, down.count, at_ns)
        is_counted = down.evidence == "witness"
        book.episode = Episode(
            name,
            down.edge,
            down.first_value if is_counted else None,
            known_down_ns=_known_down_ns(down),
        )
        is_grace = down.edge.latest_ns < book.grace_until_ns
        flap = begun(name, down, node=self._node, port=port, boot=self.boot, grace=is_grace)
        return self.put(flap)

    def explain(self, outage: Outage, cause: Cause) -> Outage:
        """Why it is down after all: what was told before it was known stays as it is."""
        is_open_question = outage.cause in BY_ITSELF and not self._episode.earlier_downs
        if is_open_question or outage.cause == "removed":
            return self.put(replace(outage, cause=cause))
        return outage

    def bounce(
        self, outage: Outage, downs: int, *, at_least: bool, since_ns: int, known_until_ns: int
    ) -> Outage:
        """The link came up and went down again unseen, for how long is not known.

        Or it did so before the state was seen down: at any time from `since_ns` on.
        It was known to be down until `known_until_ns`.
        """
        episode = self._episode
        if not episode.earlier_downs and since_ns < outage.down.earliest_ns:
            episode.down = replace(outage.down, earliest_ns=since_ns)
            outage = replace(outage, down=episode.down)
        if episode.known_down_ns is not None:
            until_ns = min(known_until_ns, since_ns)
            episode.ended_ns_min += max(0, until_ns - episode.known_down_ns)
        episode.known_down_ns = None
        return self.put(
            replace(
                outage,
                count=outage.count + downs,
                count_at_least=outage.count_at_least or at_least,
                layer="physical",
                cause="link" if outage.cause in BY_ITSELF else outage.cause,
                settled=False,
                evidence=with_evidence(outage.evidence, "witness"),
            )
        )

    def stay_down(self, outage: Outage, reading: LinkReading) -> None:
        episode = self._episode
        if episode.known_down_ns is None:
            episode.known_down_ns = reading.after_ns
        if outage.seen != "observed":
            evidence = with_evidence(outage.evidence, "state")
            outage = self.put(replace(outage, seen="observed", evidence=evidence))
        self.drop_if_long(outage, reading.before_ns)

    def drop_if_long(self, outage: Outage, now_ns: int) -> None:
        """Only what is known to have lasted: time without a reading proves nothing."""
        lasted_ns = now_ns - (self._episode.known_down_ns or now_ns)
        if outage.kind == "flap" and lasted_ns >= self._settings.drop_after.ns:
            self.put(replace(outage, kind="drop"))

    def come_up(self, outage: Outage, reading: LinkReading, earliest_ns: int) -> None:
        """It was last known to be down, or not known, at `earliest_ns`."""
        book, before = self._book, self._episode
        # Counts that fall, as no kernel's should, can contradict what was told of a later moment.
        earliest_ns = min(earliest_ns, reading.after_ns)
        up = Edge(earliest_ns, reading.after_ns, self.wall_offset_ns)
        outage, book.episode = ended(outage, before, up, self._settings)
        self.put(outage)
        if outage.cause in BY_ITSELF:
            down_ns = book.episode.ended_ns_min - before.ended_ns_min
            down_ns += book.episode.ended_ns_max - before.ended_ns_max
            book.last_down, book.last_down_ns = before.down, down_ns // 2

    def came_back_at(self, rate_mbps: int, usual_mbps: int) -> None:
        """How fast the port is after the last flap."""
        episode = self._book.episode
        flap = self._book.outages[episode.outage] if episode is not None else None
        if flap is not None and flap.status == "closed" and flap.after is None:
            self.put(replace(flap, after=After(rate_mbps, rate_mbps < usual_mbps)))

    def narrow(self, reading: LinkReading, may_lag_ns: int) -> None:
        """A reading that began before the last one: it says nothing new, perhaps more exactly."""
        episode = self._book.episode
        if episode is None:
            return
        flap = self._book.outages[episode.outage]
        self._put_narrowed(*narrowed(flap, episode, reading, may_lag_ns))

    def narrow_by_count(self, reading: LinkReading, counted: int | None) -> None:
        """What was read or told before the newest count: never more than its bounds."""
        flap = self._book.outages[self._episode.outage]
        self._put_narrowed(*narrowed_by_count(flap, self._episode, reading, counted))

    def _put_narrowed(self, flap: Outage, down: Edge) -> None:
        self._episode.down = down
        if flap.down_ns_max is not None:
            self._episode.ended_ns_max = flap.down_ns_max
        self.put(flap)

    def add_evidence(self, source: str) -> None:
        """It told of the flap that goes on, or that ended last."""
        if self._book.episode is not None:
            flap = self._book.outages[self._episode.outage]
            self.put(replace(flap, evidence=with_evidence(flap.evidence, source)))

    def give_reason(self, reason: Reason) -> None:
        """To what it explains, of what is known now or will be."""
        book = self._book
        book.reasons = still_waiting(book.reasons, reason)
        past = () if book.past is None or book.past.id in book.outages else (book.past,)
        for outage in (*past, *book.outages.values()):
            if (told := self._explained(outage)) != outage:
                self.put(told)

    def end_if_over(self, now_ns: int) -> None:
        """Once the next down would be a flap of its own."""
        episode = self._book.episode
        if episode is None:
            return
        up = self._book.outages[episode.outage].up
        if up is not None and now_ns - up.latest_ns >= self._settings.merge_within.ns:
            self.end()

    def lose(self) -> None:
        """Nothing is known any more; how an open outage ends cannot be known."""
        outage = self.going_on
        if outage is not None:
            self.put(replace(outage, status="lost"))
        if self._book.episode is not None:
            self.end()

    def end(self) -> None:
        """No more downs belong to it: it is counted, if it ended by itself."""
        book, episode = self._book, self._episode
        flap, totals = book.outages[episode.outage], book.tally.totals
        if flap.status == "closed" and flap.cause in BY_ITSELF:
            book.ended_ns = (episode.ended_ns_min + episode.ended_ns_max) // 2
            totals.down_ns += book.ended_ns
            totals.drops += flap.kind == "drop"
            totals.flaps += flap.kind == "flap"
        book.episode = None

    def put(self, outage: Outage) -> Outage:
        if self._book.outages.get(outage.id) != outage:
            self._book.outages[outage.id] = outage
            self._changed.add(outage.id)
        return outage

    def tell(self, now_ns: int, unsettled: set[str]) -> list[Outage]:
        """Each outage that changed, as a new revision; what is over and counted leaves the book."""
        book = self._book
        told = []
        for outage in list(book.outages.values()):
            if outage.id in self._changed:
                revised = replace(
                    self._explained(outage), revision=outage.revision + 1, recorded_ns=now_ns
                )
                book.outages[outage.id] = revised
                told.append(revised)
        self._changed.clear()
        kept = unsettled if book.episode is None else {*unsettled, book.episode.outage}
        for outage in [outage for outage in book.outages.values() if outage.id not in kept]:
            book.past = book.outages.pop(outage.id)
        return told

    def _explained(self, outage: Outage) -> Outage:
        """By all that was told near it."""
        last_down = self._last_down(outage)
        for reason in self._book.reasons:
            if explains(reason, outage, last_down):
                outage = explained(outage, reason)
        return outage

    def _last_down(self, outage: Outage) -> Edge:
        episode = self._book.episode
        if episode is not None and episode.outage == outage.id:
            return episode.down
        return outage.down if outage.count == 1 or outage.up is None else outage.up


def _known_down_ns(down: Down) -> int | None:
    return down.edge.latest_ns if down.seen == "observed" else None
