"""The ledger: turns readings of one port into outages that balance with its witness.

The rise of the witness between two readings is the number of physical downs in between,
whether or not a state was seen down. A down known from the state alone is counted once
the witness has paid it or never will. Downs that follow each other closely are one flap.
"""

from msgspec.structs import replace

from flapd.core.fabric.book import Book
from flapd.core.fabric.damping import let_time_pass
from flapd.core.fabric.episode import Down
from flapd.core.fabric.flaps import Flaps
from flapd.core.fabric.naming import Names
from flapd.core.fabric.reading import LinkReading
from flapd.core.fabric.reasons import Reason
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.tally import BY_ITSELF, CAUSE_OF_LAYER
from flapd.core.fabric.witness import Account, Debt, Witness
from flapd.model.event import Cause, Layer, Outage, Seen
from flapd.model.port import Port
from flapd.model.times import Edge


class Ledger:
    """Keeps the book of one port; readings come in the order in which they began."""

    def __init__(
        self, node: str, port: Port, book: Book, *, boot: str, settings: FlapSettings
    ) -> None:
        self.book = book
        self.witness = Witness(port.witness, book.witness)
        self.maintenance = False
        """Planned work goes on: what happens now is of it."""
        self.expected_rate_mbps: int | None = None
        self._flaps = Flaps(node, port, book, boot=boot, settings=settings)
        self._settings = settings

    @property
    def quiet(self) -> bool:
        """Up, nothing open, nothing owed: a reading that brings nothing new only moves stamps."""
        return self.book.up is True and not self.book.outages

    @property
    def open_outage(self) -> Outage | None:
        return self._flaps.going_on

    @property
    def is_listed_only(self) -> bool:
        """It was never up since flapd knows it: an empty cage is no outage."""
        return self.book.up is False and not self.book.ever_up

    @property
    def wall_offset_ns(self) -> int:
        """Unix time less monotonic time."""
        return self._flaps.wall_offset_ns

    def know_clock(self, wall_offset_ns: int) -> None:
        self._flaps.wall_offset_ns = wall_offset_ns

    def count_by(self, name: str, value: int | None) -> None:
        """Another counter of the same downs goes on where this one stands."""
        self.witness.go_on_by(name, value)
        self._flaps.count_by(name)

    def explain(self, reason: Reason, now_ns: int) -> list[Outage]:
        """What somebody says of a down: not that there was one, nor when."""
        self._flaps.give_reason(reason)
        return self._tell(now_ns)

    def know_port(self, port: Port) -> None:
        """Its names may have changed."""
        self._flaps.port = port

    def observe(self, reading: LinkReading) -> list[Outage]:
        """What this reading makes known: outages opened, revised or closed."""
        if reading.before_ns < self.book.before_ns:
            self._flaps.narrow(reading, self.witness.may_lag_ns)
            return self._tell(reading.after_ns)
        if self.is_listed_only:
            self._begin(reading)
        else:
            self._take(reading)
        self.book.before_ns = reading.before_ns
        return self._tell(reading.after_ns)

    def hear(self, reading: LinkReading, *, is_news: bool) -> list[Outage]:
        """What a message tells whose counts say when it was, or a reading that it overtook.

        Of counts that nobody knew that moment came after the last reading of them.
        """
        counted_ns = self.book.witness.before_ns
        if self.is_listed_only or self.book.up is None or not self.witness.can_count:
            return []
        if is_news and reading.after_ns >= counted_ns:
            self._take(replace(reading, before_ns=max(reading.before_ns, counted_ns)))
            if reading.told_by is not None:
                self._flaps.add_evidence(reading.told_by)
        elif not is_news:
            self._narrow_by_count(reading)
        return self._tell(reading.after_ns)

    def overtaken(self, reading: LinkReading) -> list[Outage]:
        """A reading of what a later count was told of already."""
        self.book.before_ns = reading.before_ns
        return self.hear(reading, is_news=False)

    def stamp(self, before_ns: int, *, witness: bool, up: bool | None) -> None:
        """Notes when a reading began, of what, and what it told of the state."""
        self.book.before_ns = before_ns
        if witness:
            self.book.witness.before_ns = max(self.book.witness.before_ns, before_ns)
        self._stamp_up(before_ns, up)

    def _stamp_up(self, before_ns: int, up: bool | None) -> None:
        book = self.book
        if up is not None:
            before_ns = max(before_ns, book.up_before_ns) if up == book.up else before_ns
            book.up, book.up_before_ns = up, before_ns
            book.ever_up = book.ever_up or up

    def lose_track(self, now_ns: int) -> list[Outage]:
        """The port is gone: what is read from now on does not continue what was read before.

        What was read until now tells nothing any more, also if the ring tells it all again. The
        names stay, since a port that comes back may count from 0.
        """
        if self._is_removed:
            return []
        book, outage = self.book, self.open_outage
        was_followed = book.up is not None and book.ever_up
        if outage is not None and not outage.settled:
            self._flaps.explain(outage, "removed")  # what goes takes its carrier away first
        if self._is_removed:
            self._stop_counting(now_ns)
            book.up, book.up_before_ns = False, now_ns
        else:
            self._let_go(now_ns)
        if was_followed and not self._is_removed:
            self._go_away("removed", Edge(min(book.before_ns, now_ns), now_ns, self.wall_offset_ns))
        book.before_ns = max(book.before_ns, now_ns)
        return self._tell(now_ns)

    def begin_boot(self, boot: str, shift_ns: int) -> list[Outage]:
        """The machine started anew, and its monotonic clock with it.

        What was at `t` of the old clock is at `t + shift_ns` of the new one, as far as the
        wall clock can be trusted. A port that was known to the last boot was down at 0.
        """
        book = self.book
        was_followed = book.up is not None and book.ever_up and not self._is_removed
        last_read_ns = min(0, book.before_ns + shift_ns)
        self._let_go(book.before_ns)
        told = self._tell(book.before_ns)
        book.before_ns = book.read_until_ns = book.up_before_ns = 0
        book.witness.before_ns = 0
        book.names, book.past, book.reasons = Names(), None, []
        book.tally.damping.at_ns += shift_ns
        book.grace_until_ns = self._settings.boot_grace.ns
        self._flaps.boot = boot
        if was_followed:
            self._go_away("boot", Edge(last_read_ns, 0, self.wall_offset_ns))
        return told + self._tell(0)

    def change_witness(self, name: str | None, now_ns: int) -> list[Outage]:
        """Another counter, or the same of another netdev, counts from now on."""
        self._settle(Account(unpaid=self.witness.replace(name)), now_ns)
        self._flaps.count_by(name)
        return self._tell(now_ns)

    def give_up(self, now_ns: int) -> list[Outage]:
        """The port will not come back."""
        self._let_go(now_ns)
        return self._tell(now_ns)

    def pass_time(self, now_ns: int) -> list[Outage]:
        """What is due although nothing was read: a port that is gone is known to be down."""
        outage = self.open_outage
        if outage is not None and self._is_removed:
            self._flaps.drop_if_long(outage, now_ns)
        let_time_pass(self.book.tally.damping, now_ns, self._settings)
        return self._tell(now_ns)

    @property
    def _is_removed(self) -> bool:
        outage = self.open_outage
        return outage is not None and outage.cause == "removed"

    def _begin(self, reading: LinkReading) -> None:
        """Until a port is up for the first time its counter is only followed."""
        if reading.witness is not None:
            self.witness.begin_at(reading.before_ns, reading.witness)
        self._note_rate(reading)
        self._stamp_up(reading.before_ns, reading.up)

    def _take(self, reading: LinkReading) -> None:
        book = self.book
        counted_since_ns = book.witness.before_ns - self.witness.may_lag_ns
        witness_before_ns = book.witness.before_ns
        outage = self.open_outage
        shows_down = reading.up is False and book.up is True and outage is None
        could_count = self.witness.can_count
        account = self._ask_witness(reading, shows_down=shows_down)
        self._settle(account, reading.after_ns)
        if outage is not None:
            self._follow(book.outages[outage.id], reading, account, counted_since_ns)
        elif account.downs:
            self._down_by_witness(reading, account, witness_before_ns)
        elif shows_down:
            is_owed = could_count and self.witness.can_count and not reading.admin
            self._down_by_state(reading, is_owed=is_owed)
        self._note_rate(reading)
        self._stamp_up(reading.before_ns, reading.up)
        self._count_certain(reading.before_ns)
        self._flaps.end_if_over(reading.before_ns)

    def _narrow_by_count(self, reading: LinkReading) -> None:
        """What it had not counted came after it: so did all that is known to have come since."""
        book, episode = self.book, self.book.episode
        if reading.witness is None:
            return
        if episode is not None and episode.first_value is not None:
            before = book.outages[episode.outage]
            counted = self.witness.counted_since(episode.first_value, reading.witness)
            self._flaps.narrow_by_count(reading, counted)
            if reading.told_by is not None and book.outages[episode.outage] != before:
                self._flaps.add_evidence(reading.told_by)
        book.witness.before_ns = max(book.witness.before_ns, reading.before_ns)
        if reading.up == book.up:
            book.up_before_ns = max(book.up_before_ns, reading.before_ns)

    def _ask_witness(self, reading: LinkReading, *, shows_down: bool) -> Account:
        if reading.witness is None:
            return self.witness.not_read(reading.before_ns)
        resets = self.witness.book.resets
        account = self.witness.read(reading.before_ns, reading.witness, shows_down=shows_down)
        if self.witness.book.resets != resets:
            self._flaps.count_by(self.witness.name)
        return account

    def _settle(self, account: Account, now_ns: int) -> None:
        """Debts that were paid, or never will be, are downs to count."""
        for debt in account.paid:
            outage = self.book.outages[debt.outage]
            cause: Cause = "link" if outage.cause in BY_ITSELF else outage.cause
            self._flaps.put(replace(outage, layer="physical", cause=cause))
            self._count_later(debt.outage, "physical", 1, now_ns)
        for debt in account.unpaid:
            self._count_later(debt.outage, debt.layer, 1, now_ns)

    def _down_by_witness(
        self, reading: LinkReading, account: Account, witness_before_ns: int
    ) -> None:
        """The witness counted downs since it was read last, or a little before: it may lag.

        One that the state still shows began no earlier than the state last showed up. Whoever
        switched the port off did that once: of several, those before it went by themselves.
        """
        book = self.book
        earliest_ns = witness_before_ns - self.witness.may_lag_ns
        if reading.admin and account.downs > 1:
            by_themselves = replace(account, downs=account.downs - 1)
            self._counted(replace(reading, up=True, admin=False), by_themselves, earliest_ns, 1)
            account = replace(account, downs=1)
        elif reading.up is False and account.downs == 1 and book.up is True:
            earliest_ns = max(earliest_ns, min(book.up_before_ns, witness_before_ns))
        self._counted(reading, account, earliest_ns, 0)

    def _counted(
        self, reading: LinkReading, account: Account, earliest_ns: int, later: int
    ) -> None:
        """Downs of one outage, after which the witness counted so many `later` ones."""
        value = self.book.witness.value
        unseen: Seen = "while_away" if reading.first else "unseen"
        down = Down(
            Edge(earliest_ns, reading.after_ns, self.wall_offset_ns),
            evidence="witness",
            count=account.downs,
            at_least=account.at_least,
            seen="observed" if reading.up is False else unseen,
            cause=self._cause_now("physical", reading),
            first_value=None if value is None else value - later - account.downs + 1,
        )
        outage = self._flaps.go_down(down, reading.before_ns)
        self._count_later(outage.id, "physical", account.downs, reading.after_ns)
        if reading.up:
            self._flaps.come_up(outage, reading, earliest_ns)

    def _down_by_state(self, reading: LinkReading, *, is_owed: bool) -> None:
        """The state went down: the witness owes it, or cannot tell.

        One that is read for the first time may have it already; and some keep the carrier of
        an interface that is switched off.
        """
        layer = reading.down_layer
        down = Down(
            Edge(self.book.up_before_ns, reading.after_ns, self.wall_offset_ns),
            evidence="state",
            layer=layer or "physical",
            cause=self._cause_now(layer, reading),
            at_least=self.witness.at_its_stop,
            first_value=self.witness.next_value if is_owed and layer == "physical" else None,
        )
        outage = self._flaps.go_down(down, reading.before_ns)
        if is_owed:
            self.witness.owe(Debt(outage.id, reading.after_ns, layer))
        else:
            self._count_later(outage.id, layer, 1, reading.after_ns)

    def _cause_now(self, layer: Layer | None, reading: LinkReading) -> Cause:
        if self.maintenance:
            return "maintenance"
        return "admin" if reading.admin else CAUSE_OF_LAYER[layer]

    def _follow(
        self, outage: Outage, reading: LinkReading, account: Account, counted_since_ns: int
    ) -> None:
        """An outage goes on, may have had more downs in it, and may be over."""
        if reading.admin and account.downs and outage.cause in BY_ITSELF:
            self._follow_until_switched_off(outage, reading, account, counted_since_ns)
            return
        book, flaps = self.book, self._flaps
        is_known_down = outage.seen == "observed" and book.up is False
        if self._is_removed and (reading.up is not None or reading.witness is not None):
            outage = flaps.explain(outage, "driver_reload")
            book.grace_until_ns = reading.after_ns + self._settings.boot_grace.ns
        elif reading.admin:
            outage = flaps.explain(outage, "admin")
        if account.downs:
            outage = flaps.bounce(
                outage,
                account.downs,
                at_least=account.at_least,
                since_ns=counted_since_ns,
                known_until_ns=book.up_before_ns if book.up is False else 0,
            )
            self._count_later(outage.id, "physical", account.downs, reading.after_ns)
        if reading.up is False:
            flaps.stay_down(outage, reading)
        elif reading.up:
            began_ns = outage.down.earliest_ns
            earliest_ns = max(book.up_before_ns, began_ns) if is_known_down else began_ns
            flaps.come_up(outage, reading, earliest_ns)

    def _follow_until_switched_off(
        self, outage: Outage, reading: LinkReading, account: Account, counted_since_ns: int
    ) -> None:
        """It ended unseen, and so did all downs that came after it but the last."""
        by_themselves = replace(account, downs=account.downs - 1)
        unseen = replace(reading, up=True, admin=False)
        self._follow(outage, unseen, by_themselves, counted_since_ns)
        self._counted(reading, replace(account, downs=1), counted_since_ns, 0)

    def _note_rate(self, reading: LinkReading) -> None:
        """How fast the port is; after a flap also whether it lost speed."""
        book, rate_mbps = self.book, reading.rate_mbps
        if rate_mbps is not None:
            self._flaps.came_back_at(rate_mbps, self.expected_rate_mbps or book.best_rate_mbps)
            book.best_rate_mbps = max(book.best_rate_mbps, rate_mbps)

    def _count_later(self, outage: str, layer: Layer | None, downs: int, now_ns: int) -> None:
        self.book.tally.add(outage, layer, downs, now_ns, planned=self.maintenance)

    def _count_certain(self, now_ns: int, *, everything: bool = False) -> None:
        book, outage = self.book, self.open_outage
        down = outage.id if outage is not None and not everything else None
        book.tally.count_certain(book.outages, down, self._settings, now_ns)
        unsettled = self._unsettled
        for outage in list(book.outages.values()):
            if not outage.settled and outage.id not in unsettled:
                self._flaps.put(replace(outage, settled=True))

    def _go_away(self, cause: Cause, edge: Edge) -> None:
        """With the device or the machine: down, whatever its counter says."""
        self._flaps.go_down_uncounted(cause, edge, evidence="discovery")
        self.book.up, self.book.up_before_ns = False, edge.latest_ns

    def _let_go(self, now_ns: int) -> None:
        """Nothing read so far goes on."""
        self._stop_counting(now_ns)
        self._flaps.lose()
        self.book.up = None

    def _stop_counting(self, now_ns: int) -> None:
        self._settle(Account(unpaid=self.witness.forget()), now_ns)
        self._count_certain(now_ns, everything=True)

    @property
    def _unsettled(self) -> set[str]:
        """Outages with downs that are owed or not yet counted."""
        owed = {debt.outage for debt in self.book.witness.debts}
        return owed | {entry.outage for entry in self.book.tally.uncounted}

    def _tell(self, now_ns: int) -> list[Outage]:
        return self._flaps.tell(now_ns, self._unsettled)
