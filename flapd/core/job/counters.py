"""Counters that tell of a connection that died, without any log; and of one that tries again."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import blake2b

import msgspec

from flapd.core.fabric.catalogue import Counter, Meaning, counter_of, counters_of, short_name
from flapd.model.fault import Fault
from flapd.model.observation import READ_SLOW, Sample
from flapd.model.port import Port

_EXHAUSTED: tuple[Meaning, ...] = ("retries_exhausted", "rnr_retries_exhausted")
_TRIES_AGAIN: tuple[Meaning, ...] = ("ack_timeout", "adaptive_timeout")
_WATCHED: frozenset[Meaning] = frozenset(
    {*_EXHAUSTED, *_TRIES_AGAIN, "completion_error", "completion_flushed"}
)


class CounterBook(msgspec.Struct):
    """Such counters of one port, as last read."""

    values: dict[str, int] = {}
    read_ns: int | None = None
    """Start of the last sweep over them."""
    unread_since_ns: dict[str, int] = {}
    """Start of the last sweep that could read them, of those that cannot be read now."""
    tried_again_ns: int | None = None
    """An acknowledgement did not come in time, soon after this."""


class Rise(msgspec.Struct, frozen=True):
    """How far a counter rose, and since when."""

    name: str
    meaning: Meaning
    amount: int
    value: int
    since_ns: int


def rises(book: CounterBook, port: Port, sample: Sample) -> Sequence[Rise]:
    """Of the counters that are watched here, between this sweep and the last; keeps its values."""
    watched = _watched(port.driver)
    if watched.keys().isdisjoint(sample.values) and not sample.errors:
        if sample.reads & READ_SLOW:
            book.read_ns = sample.before_ns
        return ()
    found = sorted(_taken(book, watched, sample), key=lambda rise: rise.name)
    for name in sample.errors.keys() & book.values.keys():
        book.unread_since_ns.setdefault(name, book.read_ns or sample.before_ns)
    if sample.reads & READ_SLOW or not watched.keys().isdisjoint(sample.values):
        book.read_ns = sample.before_ns
    tried_ns = [rise.since_ns for rise in found if rise.meaning in _TRIES_AGAIN]
    book.tried_again_ns = max(tried_ns, default=book.tried_again_ns)
    return found


def _taken(book: CounterBook, watched: Mapping[str, Counter], sample: Sample) -> Iterator[Rise]:
    for name in watched.keys() & sample.values.keys():
        rise = _rise(book, watched[name], sample.values[name])
        book.values[name] = sample.values[name]
        book.unread_since_ns.pop(name, None)
        if rise is not None:
            yield rise


def sees_retries(book: CounterBook, port: Port) -> bool:
    """Acknowledgements that do not come are counted here."""
    watched = _watched(port.driver)
    return any(watched[name].meaning in _TRIES_AGAIN for name in book.values if name in watched)


def faults_of(
    found: Sequence[Rise], node: str, boot: str, port: Port, until_ns: int, wall_offset_ns: int
) -> Iterator[Fault]:
    """What these rises, seen until `until_ns`, are evidence of.

    Queue pairs that are torn down flush what was posted to them, and mlx5 counts that among
    the completions with an error as well; and what ran out of retries ends in one.
    """
    telling = [rise for rise in found if rise.meaning in _EXHAUSTED]
    errors = [rise for rise in found if rise.meaning == "completion_error"]
    flushed = sum(rise.amount for rise in found if rise.meaning == "completion_flushed")
    if not telling and sum(rise.amount for rise in errors) > flushed:
        telling = errors
    for rise in telling:
        yield _fault(rise, node, boot, port, until_ns, wall_offset_ns)


def _fault(
    rise: Rise, node: str, boot: str, port: Port, until_ns: int, wall_offset_ns: int
) -> Fault:
    half_ns = (until_ns - rise.since_ns + 1) // 2
    said = f"{node}|{port.key}|{boot}|{rise.name}|{rise.value}|{until_ns}"
    name = short_name(rise.name)
    return Fault(
        id="fault-" + blake2b(said.encode(), digest_size=8).hexdigest(),
        kind="counter",
        form=rise.meaning,
        text=f"{name} of {port.name} rose by {rise.amount} to {rise.value}",
        time_ns=rise.since_ns + half_ns + wall_offset_ns,
        clock_error_ns=half_ns,
        arrived_ns=until_ns + wall_offset_ns,
        hca=port.device,
        port=port.number,
        event=rise.meaning.replace("_", " "),
        repeats=rise.amount,
    )


def _rise(book: CounterBook, counter: Counter, value: int) -> Rise | None:
    """None: it did not, it was reset, or nothing is known of it to compare with."""
    name, last = counter.name, book.values.get(counter.name)
    if last is None or book.read_ns is None or counter.meaning is None:
        return None
    amount = counter.rise(last, value)
    since_ns = book.unread_since_ns.get(name, book.read_ns)
    return Rise(name, counter.meaning, amount, value, since_ns) if amount else None


@cache
def _watched(driver: str | None) -> Mapping[str, Counter]:
    """By name, with the names that representors have for them."""
    names = counters_of(driver).keys()
    named = (*names, *(name.replace("hw_counters/", "hw_counters/vport_") for name in names))
    known = ((name, counter_of(driver, name)) for name in named)
    return {
        name: counter
        for name, counter in known
        if counter is not None and counter.meaning in _WATCHED
    }
