"""Removal of rings that nobody writes any more: they are memory."""

from collections.abc import Collection
from pathlib import Path

import structlog

from flapd.model.times import SECOND_NS
from flapd.store.ring import Ring, RingError, read_ring, ring_files

GONE_NS = 3_600 * SECOND_NS
"""A port that comes back earlier finds its ring."""
_JUST_NOW_NS = 2**63

_log = structlog.get_logger("flapd.ring")


def remove_old_rings(directory: Path, boot: str, present: Collection[str], now_ns: int) -> None:
    """Rings of other boots, and of ports that are not there and were not read for an hour."""
    for path in ring_files(directory):
        try:
            ring = read_ring(path)
            if ring.key not in present and (ring.boot != boot or _last_ns(ring) < now_ns - GONE_NS):
                path.unlink(missing_ok=True)
                _log.info("old_ring_removed", path=str(path))
        except (RingError, OSError):
            continue  # not ours, or already gone


def _last_ns(ring: Ring) -> int:
    """When its last row began; a ring without any was just made."""
    return max((row.before_ns for row in ring.rows(only=())), default=_JUST_NOW_NS)
