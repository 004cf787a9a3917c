"""The witness: what the counter of downs counted, and which downs it still owes.

A down seen in the state before the counter moved is a debt, which the next rise pays.
What is unpaid after the counter's lag it will not count: a subnet manager took the port
down while the link was up, or the counter lies.
"""

import msgspec

from flapd.core.fabric.catalogue import lag_of, rise_between, stop_of
from flapd.core.fabric.view import WitnessStatus
from flapd.model.event import Layer
from flapd.model.times import SECOND_NS

UNREAD_FOR_NS = 10 * SECOND_NS
"""After so long without a reading a debt is counted by the state alone."""
PAID_LATE_WITHIN_NS = 10 * SECOND_NS
"""A rise this soon after a debt was written off is taken for its payment, not for a new down."""


class Debt(msgspec.Struct, frozen=True):
    """A down that the state showed and the counter did not, yet."""

    outage: str
    since_ns: int
    """End of the reading that showed it."""
    layer: Layer | None
    """As the physical state told; None where it did not."""


class WitnessBook(msgspec.Struct):
    """What is kept of the counter between readings and over restarts."""

    value: int | None = None
    before_ns: int = 0
    """Start of its last reading."""
    moved: bool = False
    lies: bool = False
    debts: list[Debt] = msgspec.field(default_factory=list)
    written_off: list[Debt] = msgspec.field(default_factory=list)
    """Physical downs that the counter owed for too long."""
    counted_unread: int = 0
    """Downs that were counted while it could not be read: its next reading has them."""
    resets: int = 0


class Account(msgspec.Struct, frozen=True):
    """What one reading of the counter tells."""

    downs: int = 0
    """Downs that nobody has seen in the state."""
    paid: tuple[Debt, ...] = ()
    unpaid: tuple[Debt, ...] = ()
    """Debts that will not be paid any more."""
    at_least: bool = False
    """There may have been more: the counter was reset, or stands at its stop."""


class Witness:
    """Keeps the book of one counter, or of none."""

    def __init__(self, name: str | None, book: WitnessBook) -> None:
        self.name = name
        self.book = book
        self.is_relieved = False
        """Where it stops another counter takes over, and so it misses none."""

    @property
    def status(self) -> WitnessStatus:
        if self.name is None:
            return "none"
        if self.book.lies:
            return "lying"
        if self.at_its_stop:
            return "saturated"
        return "live" if self.book.moved else "unproven"

    @property
    def at_its_stop(self) -> bool:
        return (
            self.name is not None
            and self.book.value is not None
            and self.book.value == stop_of(self.name)
            and not self.is_relieved
        )

    @property
    def can_count(self) -> bool:
        return self.book.value is not None and not self.at_its_stop

    @property
    def next_value(self) -> int:
        """What it will read once it has counted what it owes and one down more."""
        assert self.book.value is not None
        return self.book.value + len(self.book.debts) + 1

    @property
    def may_lag_ns(self) -> int:
        """How long before its last reading a down may have been that it counts only now."""
        return lag_of(self.name or "")

    def read(self, before_ns: int, value: int, *, shows_down: bool) -> Account:
        """Takes one reading; `shows_down` is one with which the state went down."""
        book = self.book
        rise, was_reset = self._rise(value)
        book.value, book.before_ns = value, max(book.before_ns, before_ns)
        book.moved = book.moved or rise > 0
        rise -= min(rise, book.counted_unread)
        book.counted_unread = 0
        paid = self._pay(rise, shows_down=shows_down)
        downs = rise - len(paid)
        downs -= self._pay_late(downs, before_ns)
        return Account(
            downs=downs,
            paid=tuple(paid),
            unpaid=tuple(self._write_off(before_ns, everything=was_reset)),
            at_least=was_reset or self.at_its_stop,
        )

    def counted_since(self, earlier: int, value: int) -> int | None:
        """Downs between two of its values; None where `value` is the earlier one."""
        return rise_between(self.name or "", earlier, value)

    def begin_at(self, before_ns: int, value: int) -> None:
        """Counts from here, whatever it counted before."""
        self.book.value, self.book.before_ns = value, before_ns

    def go_on_by(self, name: str, value: int | None) -> None:
        """Another counter goes on where this one stands, from a value that means the same.

        What is owed, that one will pay.
        """
        self.name, self.book.value = name, value

    def not_read(self, now_ns: int) -> Account:
        """Another reading without it."""
        book = self.book
        unpaid = [debt for debt in book.debts if now_ns - debt.since_ns > UNREAD_FOR_NS]
        book.debts = book.debts[len(unpaid) :]
        book.counted_unread += sum(1 for debt in unpaid if debt.layer != "logical")
        return Account(unpaid=tuple(unpaid))

    def owe(self, debt: Debt) -> None:
        self.book.debts.append(debt)

    def forget(self) -> tuple[Debt, ...]:
        """Nothing read so far can be continued: the debts that are left."""
        book = self.book
        unpaid = tuple(book.debts)
        book.value, book.debts, book.written_off, book.counted_unread = None, [], [], 0
        return unpaid

    def replace(self, name: str | None) -> tuple[Debt, ...]:
        """Another counter counts from now on: the debts that the old one left."""
        unpaid = self.forget()
        self.name = name
        self.book.moved = self.book.lies = False
        return unpaid

    def _rise(self, value: int) -> tuple[int, bool]:
        """How far it rose, and whether it was reset in between.

        Somebody's reset of a counter that stops leaves what was counted since. One that
        wraps falls when its netdev is made anew, whose bring-up moves it as well: no rise.
        """
        if self.name is None or self.book.value is None:
            return 0, False
        rise = rise_between(self.name, self.book.value, value)
        if rise is not None:
            return rise, False
        self.book.resets += 1
        return (value if stop_of(self.name) is not None else 0), True

    def _pay(self, rise: int, *, shows_down: bool) -> list[Debt]:
        """Takes the debts that a rise pays from the book.

        Those of the link first, then what the state shows with this very reading; that the
        subnet manager's downs were the link's is believed last.
        """
        debts = self.book.debts
        owed = sorted(debts, key=lambda debt: debt.layer == "logical")
        of_the_link = sum(1 for debt in debts if debt.layer != "logical")
        paid = owed[: rise - (shows_down and rise > of_the_link)]
        self.book.debts = [debt for debt in debts if debt not in paid]
        return paid

    def _pay_late(self, downs: int, before_ns: int) -> int:
        book = self.book
        owed = [
            debt for debt in book.written_off if before_ns - debt.since_ns <= PAID_LATE_WITHIN_NS
        ]
        paid = min(downs, len(owed))
        book.written_off = owed[paid:]
        if paid:
            book.lies = False
        return paid

    def _write_off(self, before_ns: int, *, everything: bool) -> list[Debt]:
        """Takes the debts that are overdue from the book; after a reset nothing more is paid."""
        book, lag_ns = self.book, lag_of(self.name or "")
        overdue = [debt for debt in book.debts if everything or before_ns - debt.since_ns > lag_ns]
        book.debts = [debt for debt in book.debts if debt not in overdue]
        if not everything:
            never_counted = [debt for debt in overdue if debt.layer == "physical"]
            book.written_off += never_counted
            book.lies = book.lies or bool(never_counted)
        return overdue
