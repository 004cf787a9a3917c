"""Taking of black boxes: from the ring's rows to segments; reads and packs, writes nothing."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import get_args

from msgspec.structs import replace

from flapd.core.fabric.catalogue import Tier
from flapd.store.as_read import values_as_read
from flapd.store.black_box import Segment, Slot
from flapd.store.ring import Ring, RingError, read_ring, ring_path
from flapd.store.ring_layout import RingRow
from flapd.store.segment import pack_segment
from flapd.store.slots import SLOT_NS

_TIERS: tuple[Tier, ...] = get_args(Tier)


def take_segments(directory: Path, slots: Sequence[Slot]) -> Iterator[Segment]:
    """What the rings still hold of these slots, which must be over."""
    ports: dict[tuple[str, str], list[Slot]] = defaultdict(list)
    for slot in slots:
        ports[slot.key, slot.boot].append(slot)
    for (key, boot), wanted in ports.items():
        for tier in _TIERS:
            ring = _ring(ring_path(directory, key, tier), boot)
            if ring is not None:
                yield from _segments(ring, wanted)


def first_slot(directory: Path, key: str, boot: str) -> int | None:
    """Number of the slot in which reading of this port began; None where that is not known."""
    rings = [_ring(ring_path(directory, key, tier), boot) for tier in _TIERS]
    begun = [_begun_ns(ring) for ring in rings if ring is not None]
    known = [begun_ns for begun_ns in begun if begun_ns is not None]
    return min(known) // SLOT_NS if known and len(known) == len(begun) else None


def _begun_ns(ring: Ring) -> int | None:
    try:
        return ring.begun_ns()
    except RingError:
        return None  # removed meanwhile


def _ring(path: Path, boot: str) -> Ring | None:
    try:
        ring = read_ring(path)
    except RingError:
        return None  # as for a port that is gone: its black box says what it lacks
    return ring if ring.boot == boot else None


def _segments(ring: Ring, slots: Sequence[Slot]) -> Iterator[Segment]:
    rows: dict[int, list[RingRow]] = {slot.number: [] for slot in slots}
    try:
        for row in ring.rows(since_ns=min(rows) * SLOT_NS - 1):
            if row.before_ns // SLOT_NS in rows:
                as_read = replace(row, values=values_as_read(ring.tier, row))
                rows[row.before_ns // SLOT_NS].append(as_read)
    except RingError:
        return  # replaced meanwhile, and its rows are gone
    for slot in slots:
        if rows[slot.number]:
            packed = pack_segment(ring.columns, rows[slot.number])
            yield Segment(slot, ring.tier, ring.columns, packed)
