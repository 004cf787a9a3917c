"""The ledger: turns readings of one port into outages that balance with its witness.

The rise of the witness between two readings is the number of physical downs in between,
whether or not a state was seen down. A down known from the state alone is counted once
the witness has paid it or never will.
"""

from hashlib import blake2b

import msgspec
from msgspec.structs import replace

from flapd.core.fabric.view import LinkTotals
from flapd.core.fabric.witness import Account, Debt, Witness, WitnessBook
from flapd.model.event import Cause, Layer, Outage, Seen
from flapd.model.port import Port
from flapd.model.times import Edge

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

    witness: WitnessBook = msgspec.field(default_factory=WitnessBook)
    before_ns: int = 0
    """Start of the last reading; one that began earlier tells nothing new."""
    read_until_ns: int = 0
    """End of the last reading, which may stand for several: the next one began later."""
    up: bool | None = None
    up_before_ns: int = 0
    """Start of the last reading that told `up`."""
    ever_up: bool = False
    named_up_to: int = -1
    """Highest witness value an outage was named after: no value names two."""
    open: str | None = None
    """Id of the outage that goes on."""
    outages: dict[str, Outage] = msgspec.field(default_factory=dict)
    """By id: the open one, and those whose downs are not all settled."""
    last_down: Edge | None = None
    last_down_ns: int | None = None
    totals: LinkTotals = msgspec.field(default_factory=LinkTotals)


class Ledger:
    """Keeps the book of one port; readings come in the order in which they began."""

    def __init__(self, node: str, port: Port, book: Book, *, boot: str, drop_after_ns: int) -> None:
        self.port = port
        self.book = book
        self.witness = Witness(port.witness, book.witness)
        self.boot = boot
        self.wall_offset_ns = 0
        self._node = node
        self._drop_after_ns = drop_after_ns
        self._changed: set[str] = set()

    @property
    def quiet(self) -> bool:
        """Up, nothing open, nothing owed: a reading that brings nothing new only moves stamps."""
        return self.book.up is True and not self.book.outages

    @property
    def open_outage(self) -> Outage | None:
        return self.book.outages[self.book.open] if self.book.open is not None else None

    def observe(self, reading: LinkReading) -> list[Outage]:
        """What this reading makes known: outages opened, revised or closed."""
        if reading.before_ns < self.book.before_ns:
            return []
        witness_before_ns = self.book.witness.before_ns
        shows_down = reading.up is False and self.book.up is True and self.book.open is None
        if reading.witness is not None:
            account = self.witness.read(reading.before_ns, reading.witness, shows_down=shows_down)
        else:
            account = self.witness.not_read(reading.before_ns)
        self._settle(account)
        outage = self.open_outage
        if outage is not None:
            self._follow(outage, reading, account)
        elif account.downs:
            self._open_by_witness(reading, account, witness_before_ns)
        elif shows_down:
            self._open_by_state(reading)
        self.stamp(reading.before_ns, witness=False, up=reading.up)
        return self._tell(reading.after_ns)

    def stamp(self, before_ns: int, *, witness: bool, up: bool | None) -> None:
        """Notes when a reading began, of what, and what it told of the state."""
        book = self.book
        if before_ns < book.before_ns:
            return
        book.before_ns = before_ns
        if witness:
            book.witness.before_ns = before_ns
        if up is not None:
            book.up, book.up_before_ns = up, before_ns
            book.ever_up = book.ever_up or up

    def lose_track(self, now_ns: int) -> list[Outage]:
        """The port is gone: what is read from now on does not continue what was read before.

        The stamp of the last reading stays, so that the ring does not tell it all again, and
        so do the names, since a port that comes back may count from 0.
        """
        self._settle(Account(unpaid=self.witness.forget()))
        if self.open_outage is not None:
            self._put(replace(self.open_outage, status="lost"))
        self.book.open = self.book.up = None
        return self._tell(now_ns)

    def begin_boot(self, boot: str) -> list[Outage]:
        """The machine started anew, and its monotonic clock with it."""
        told = self.lose_track(self.book.before_ns)
        self.book.before_ns = self.book.read_until_ns = 0
        self.book.named_up_to = -1
        self.boot = boot
        return told

    def change_witness(self, name: str | None, now_ns: int) -> list[Outage]:
        """Another counter, or the same of another netdev, counts from now on."""
        self._settle(Account(unpaid=self.witness.replace(name)))
        return self._tell(now_ns)

    def _settle(self, account: Account) -> None:
        """Counts downs that are no longer in question."""
        downs = self.book.totals.downs
        downs["link"] += account.downs + len(account.paid)
        for debt in account.paid:
            outage = self.book.outages[debt.outage]
            self._put(replace(outage, layer="physical", cause="link", settled=True))
        for debt in account.unpaid:
            downs[_CAUSE_OF_LAYER[debt.layer]] += 1
            self._put(replace(self.book.outages[debt.outage], settled=True))

    def _open_by_witness(self, reading: LinkReading, account: Account, earliest_ns: int) -> None:
        """The witness counted downs since `earliest_ns`; the last of them may still go on."""
        unseen: Seen = "while_away" if reading.first else "unseen"
        value = self.book.witness.value
        outage = self._open(
            reading,
            earliest_ns,
            evidence="witness",
            count=account.downs,
            at_least=account.at_least,
            seen="observed" if reading.up is False else unseen,
            named_after=None if value is None else value - account.downs + 1,
        )
        if reading.up:
            self._close(outage, reading, outage.down.earliest_ns)

    def _open_by_state(self, reading: LinkReading) -> None:
        """The state went down: the witness owes it, or cannot tell."""
        layer, can_count = reading.down_layer, self.witness.can_count
        outage = self._open(
            reading,
            self.book.up_before_ns,
            evidence="state",
            layer=layer or "physical",
            cause=_CAUSE_OF_LAYER[layer],
            at_least=self.witness.at_its_stop,
            named_after=self.witness.next_value if can_count and layer == "physical" else None,
            settled=not can_count,
        )
        debt = Debt(outage.id, reading.after_ns, layer)
        if can_count:
            self.witness.owe(debt)
        else:
            self._settle(Account(unpaid=(debt,)))

    def _open(
        self,
        reading: LinkReading,
        earliest_ns: int,
        *,
        evidence: str,
        at_least: bool,
        named_after: int | None,
        count: int = 1,
        seen: Seen = "observed",
        layer: Layer = "physical",
        cause: Cause = "link",
        settled: bool = True,
    ) -> Outage:
        outage = Outage(
            id=self._name(reading, named_after, count),
            revision=0,
            node=self._node,
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
            count_at_least=at_least,
            settled=settled,
            evidence=(evidence,),
            recorded_ns=reading.after_ns,
        )
        self.book.open = outage.id
        self._put(outage)
        return outage

    def _follow(self, outage: Outage, reading: LinkReading, account: Account) -> None:
        """An outage goes on, may have had more downs in it, and may be over."""
        seen_down_before_ns = outage.down.earliest_ns
        if outage.seen == "observed" and self.book.up is False:
            seen_down_before_ns = self.book.up_before_ns
        if account.downs:
            outage = replace(
                outage,
                count=outage.count + account.downs,
                count_at_least=outage.count_at_least or account.at_least,
                layer="physical",
                cause="link",
                evidence=_with(outage.evidence, "witness"),
            )
            self._put(outage)
        if reading.up is False:
            self._see_down(outage, reading)
        elif reading.up:
            self._close(outage, reading, seen_down_before_ns)

    def _see_down(self, outage: Outage, reading: LinkReading) -> None:
        if outage.seen != "observed":
            evidence = _with(outage.evidence, "state")
            outage = replace(outage, seen="observed", evidence=evidence)
            self._put(outage)
        if outage.kind == "flap" and self._is_drop(reading.before_ns - outage.down.latest_ns):
            self._put(replace(outage, kind="drop"))

    def _close(self, outage: Outage, reading: LinkReading, earliest_ns: int) -> None:
        up = Edge(earliest_ns, reading.after_ns, self.wall_offset_ns)
        shortest_ns = max(0, up.earliest_ns - outage.down.latest_ns)
        longest_ns = up.latest_ns - outage.down.earliest_ns
        is_drop = self._is_drop(shortest_ns)
        self._put(
            replace(
                outage,
                status="closed",
                kind="drop" if is_drop else "flap",
                up=up,
                down_ns_min=shortest_ns,
                down_ns_max=longest_ns,
            )
        )
        book = self.book
        book.open = None
        book.last_down, book.last_down_ns = outage.down, (shortest_ns + longest_ns) // 2
        book.totals.down_ns += book.last_down_ns
        book.totals.drops += is_drop
        book.totals.flaps += not is_drop

    def _is_drop(self, down_ns: int) -> bool:
        """Only what is known to have lasted: time without a reading proves nothing."""
        return down_ns >= self._drop_after_ns

    def _put(self, outage: Outage) -> None:
        if self.book.outages.get(outage.id) != outage:
            self.book.outages[outage.id] = outage
            self._changed.add(outage.id)

    def _tell(self, now_ns: int) -> list[Outage]:
        """Each outage that changed, as a new revision; what is settled leaves the book."""
        book = self.book
        told = []
        for outage in list(book.outages.values()):
            if outage.id in self._changed:
                revised = replace(outage, revision=outage.revision + 1, recorded_ns=now_ns)
                book.outages[outage.id] = revised
                told.append(revised)
        self._changed.clear()
        unsettled = {debt.outage for debt in book.witness.debts} | {book.open}
        book.outages = {key: outage for key, outage in book.outages.items() if key in unsettled}
        return told

    def _name(self, reading: LinkReading, named_after: int | None, count: int) -> str:
        """The same for the same outage after a restart, on a hub, and with the history lost."""
        mark = f"at {reading.before_ns}"
        if named_after is not None and named_after > self.book.named_up_to:
            mark = f"{self.port.witness} {named_after}"
            self.book.named_up_to = named_after + count - 1
        name = f"{self._node}|{self.port.key}|{self.boot}|{mark}"
        return "flap-" + blake2b(name.encode(), digest_size=8).hexdigest()


def _with(evidence: tuple[str, ...], source: str) -> tuple[str, ...]:
    return evidence if source in evidence else (*evidence, source)
