"""The ledger: turns readings of one port into outages that balance with its witness.

The rise of the witness between two readings is the number of physical downs in
between, whether or not a state was seen down. A down seen in the state before the
witness moved is a debt, which the next rise pays; unpaid after `WITNESS_LAG_NS` the
witness is lying. A witness at its stop counts no further: then the state counts, and
every outage says "at least".
"""

from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from flapd.core.fabric.catalogue import rise_between, stop_of
from flapd.core.fabric.view import LinkTotals, WitnessStatus
from flapd.model.event import Cause, Layer, Outage, Seen
from flapd.model.port import Port
from flapd.model.times import SECOND_NS, Edge

WITNESS_LAG_NS = SECOND_NS
"""How long a witness may take to count a down that the state already shows."""

_CAUSE_OF_LAYER: dict[Layer | None, Cause] = {
    "physical": "link",
    "logical": "subnet",
    None: "unknown",
}


class LinkReading(msgspec.Struct, frozen=True):
    """What one sample says of the link; None = not read this time."""

    before_ns: int
    after_ns: int
    witness: int | None = None
    up: bool | None = None
    down_layer: Layer | None = None
    """Of a down seen in the state: which layer is down; None where that cannot be told."""
    first: bool = False
    """Nobody read the port since the last reading: what happened meanwhile, happened unwatched."""


class Book(msgspec.Struct):
    """What the ledger keeps of one port between readings and over restarts."""

    before_ns: int = 0
    """Start of the last reading; one that began earlier tells nothing new."""
    witness: int | None = None
    witness_before_ns: int = 0
    """Start of the last reading of the witness."""
    witness_moved: bool = False
    witness_lies: bool = False
    debt_since_ns: int | None = None
    """A down was seen in the state that the witness has not counted yet."""
    up: bool | None = None
    up_before_ns: int = 0
    """Start of the last reading that told `up`."""
    ever_up: bool = False
    named_up_to: int = -1
    """Highest witness value an outage was named after: no value names two."""
    outage: Outage | None = None
    """The open one."""
    last_down: Edge | None = None
    last_down_ns: int | None = None
    totals: LinkTotals = msgspec.field(default_factory=LinkTotals)


class Ledger:
    """Keeps the book of one port; readings come in the order in which they began."""

    def __init__(self, node: str, port: Port, book: Book, *, boot: str, drop_after_ns: int) -> None:
        self.port = port
        self.book = book
        self.boot = boot
        self.wall_offset_ns = 0
        self._node = node
        self._drop_after_ns = drop_after_ns

    @property
    def quiet(self) -> bool:
        """Up, nothing open, nothing owed: a reading that brings nothing new only moves stamps."""
        book = self.book
        return book.up is True and book.outage is None and book.debt_since_ns is None

    @property
    def witness_status(self) -> WitnessStatus:
        if self.port.witness is None:
            return "none"
        if self.book.witness_lies:
            return "lying"
        if self._at_its_stop():
            return "saturated"
        return "live" if self.book.witness_moved else "unproven"

    def observe(self, reading: LinkReading) -> list[Outage]:
        """What this reading makes known: outages opened, revised or closed."""
        book = self.book
        if reading.before_ns < book.before_ns:
            return []
        told_before = book.outage
        witness_before_ns = book.witness_before_ns
        downs = self._new_downs(reading)
        if book.outage is not None:
            self._follow(book.outage, reading, downs)
        elif downs:
            self._open_by_witness(reading, downs, witness_before_ns)
        elif reading.up is False and book.up is True:
            self._open_by_state(reading)
        self._keep_stamps(reading)
        return self._tell(told_before)

    def quiet_reading(self, before_ns: int, *, witness: bool, state: bool) -> None:
        """A reading of a quiet port in which nothing had changed."""
        book = self.book
        if before_ns < book.before_ns:
            return
        book.before_ns = before_ns
        if witness:
            book.witness_before_ns = before_ns
        if state:
            book.up_before_ns = before_ns

    def tick(self, now_ns: int) -> list[Outage]:
        """An outage that has become a drop says so while it is still open."""
        outage = self.book.outage
        if outage is None or outage.kind == "drop":
            return []
        if now_ns - outage.down.latest_ns < self._drop_after_ns:
            return []
        self.book.outage = replace(outage, kind="drop")
        return self._tell(outage)

    def lose_track(self) -> list[Outage]:
        """The port is gone: what is read from now on does not continue what was read before.

        The stamp of the last reading stays, so that the ring does not tell it all again, and
        so do the names, since a port that comes back may count from 0.
        """
        book = self.book
        lost = book.outage
        book.outage = book.witness = book.up = book.debt_since_ns = None
        if lost is None:
            return []
        return [replace(lost, revision=lost.revision + 1, status="lost")]

    def begin_boot(self, boot: str) -> list[Outage]:
        """The machine started anew, and its monotonic clock with it."""
        told = self.lose_track()
        self.book.before_ns, self.book.named_up_to = 0, -1
        self.boot = boot
        return told

    def _new_downs(self, reading: LinkReading) -> int:
        """Downs the witness counted since it was last read, less one that was seen already."""
        book, value = self.book, reading.witness
        if value is None:
            return 0
        rise = 0 if book.witness is None else rise_between(self._witness, book.witness, value)
        book.witness, book.witness_before_ns = value, reading.before_ns
        if rise is None:
            book.totals.resets += 1
            self._settle_debt()
            return 0
        if rise > 0:
            book.witness_moved = True
            rise -= self._settle_debt()
            book.totals.downs["link"] += rise
        elif self._debt_is_overdue(reading.before_ns):
            book.witness_lies = True
            self._settle_debt()
        return rise

    def _settle_debt(self) -> int:
        """Counts the owed down, now that nothing more can be learned of it; how many that were."""
        if self.book.debt_since_ns is None:
            return 0
        self.book.debt_since_ns = None
        self.book.totals.downs["link"] += 1
        return 1

    def _debt_is_overdue(self, now_ns: int) -> bool:
        since_ns = self.book.debt_since_ns
        return since_ns is not None and now_ns - since_ns > WITNESS_LAG_NS

    def _open_by_witness(self, reading: LinkReading, downs: int, earliest_ns: int) -> None:
        """The witness counted downs since `earliest_ns`; the last of them may still go on."""
        seen: Seen = "while_away" if reading.first else "unseen"
        outage = self._opened(
            reading,
            earliest_ns,
            count=downs,
            seen="observed" if reading.up is False else seen,
            named_after=self._value() - downs + 1,
            evidence=("witness",),
        )
        self.book.outage = outage
        if reading.up:
            self._close(outage, reading, outage.down.earliest_ns)

    def _open_by_state(self, reading: LinkReading) -> None:
        """The state went down and the witness has not counted it, or never will."""
        cause = _CAUSE_OF_LAYER[reading.down_layer]
        expected = self._next_value() if cause == "link" else None
        self.book.outage = self._opened(
            reading,
            self.book.up_before_ns,
            layer=reading.down_layer or "physical",
            cause=cause,
            named_after=expected,
            evidence=("state",),
        )
        if expected is not None:
            self.book.debt_since_ns = reading.after_ns
        else:
            self.book.totals.downs[cause] += 1

    def _opened(
        self,
        reading: LinkReading,
        earliest_ns: int,
        *,
        named_after: int | None,
        evidence: tuple[str, ...],
        count: int = 1,
        seen: Seen = "observed",
        layer: Layer = "physical",
        cause: Cause = "link",
    ) -> Outage:
        return Outage(
            id=self._name(reading, named_after, count),
            revision=0,
            key=self.port.key,
            port=self.port.name,
            guid=self.port.guid,
            boot=self.boot,
            kind="flap",
            status="open",
            cause=cause,
            seen=seen,
            layer=layer,
            down=Edge(earliest_ns, reading.after_ns, self.wall_offset_ns),
            up=None,
            count=count,
            count_at_least=self._at_its_stop(),
            evidence=evidence,
            recorded_ns=reading.after_ns,
        )

    def _follow(self, outage: Outage, reading: LinkReading, downs: int) -> None:
        seen_down_before_ns = outage.down.earliest_ns
        if outage.seen == "observed" and self.book.up is False:
            seen_down_before_ns = self.book.up_before_ns
        if downs:
            outage = replace(
                outage,
                count=outage.count + downs,
                count_at_least=self._at_its_stop(),
                layer="physical",
                cause="link",
                recorded_ns=reading.after_ns,
            )
        if reading.up is False and outage.seen != "observed":
            outage = replace(outage, seen="observed", recorded_ns=reading.after_ns)
        self.book.outage = outage
        if reading.up:
            self._close(outage, reading, seen_down_before_ns)

    def _close(self, outage: Outage, reading: LinkReading, earliest_ns: int) -> None:
        up = Edge(earliest_ns, reading.after_ns, self.wall_offset_ns)
        shortest_ns = max(0, up.earliest_ns - outage.down.latest_ns)
        down_ns = (shortest_ns + up.latest_ns - outage.down.earliest_ns) // 2
        is_drop = outage.kind == "drop" or shortest_ns >= self._drop_after_ns
        book = self.book
        book.outage = replace(
            outage,
            status="closed",
            kind="drop" if is_drop else "flap",
            up=up,
            recorded_ns=reading.after_ns,
        )
        book.last_down, book.last_down_ns = outage.down, down_ns
        book.totals.down_ns += down_ns
        book.totals.drops += is_drop
        book.totals.flaps += not is_drop

    def _tell(self, told_before: Outage | None) -> list[Outage]:
        """The outage as a new revision, where anything about it has changed."""
        now = self.book.outage
        if now is None or now is told_before:
            return []
        told = replace(now, revision=now.revision + 1)
        self.book.outage = told if told.status == "open" else None
        return [told]

    def _keep_stamps(self, reading: LinkReading) -> None:
        book = self.book
        book.before_ns = reading.before_ns
        if reading.up is not None:
            book.up, book.up_before_ns = reading.up, reading.before_ns
            book.ever_up = book.ever_up or reading.up

    def _name(self, reading: LinkReading, named_after: int | None, count: int) -> str:
        """The same for the same outage after a restart, on a hub, and with the history lost."""
        mark = f"at {reading.before_ns}"
        if named_after is not None and named_after > self.book.named_up_to:
            mark = f"{self.port.witness} {named_after}"
            self.book.named_up_to = named_after + count - 1
        name = f"{self._node}|{self.port.key}|{self.boot}|{mark}"
        return "flap-" + blake2b(name.encode(), digest_size=8).hexdigest()

    @property
    def _witness(self) -> str:
        assert self.port.witness is not None
        return self.port.witness

    def _value(self) -> int:
        assert self.book.witness is not None
        return self.book.witness

    def _next_value(self) -> int | None:
        """What the witness will read after one more down; None where it won't count it."""
        if self.book.witness is None or self.witness_status not in {"live", "unproven"}:
            return None
        return self.book.witness + 1

    def _at_its_stop(self) -> bool:
        return self.book.witness is not None and self.book.witness == stop_of(self._witness)
