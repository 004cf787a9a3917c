"""What the ring remembers: the samples an agent that was killed had not yet committed."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import structlog

from flapd.model.observation import Sample
from flapd.store.ring import Ring, RingError, read_ring, ring_files

_log = structlog.get_logger("flapd.ring")


class Known(msgspec.Struct, frozen=True):
    """What the checkpoint has of a port."""

    counted_by: str
    read_until_ns: int
    """End of the last reading that is in it."""


def remembered_samples(
    directory: Path, boot: str, known: Callable[[str], Known | None]
) -> list[Sample]:
    """Samples of this boot, in order, that go on where the checkpoint ends.

    Of a port that the checkpoint does not know, or that counted by something else,
    there is nothing to go on from.
    """
    samples: list[Sample] = []
    for path in ring_files(directory):
        try:
            samples += _samples_of(read_ring(path), boot, known)
        except (RingError, OSError) as error:
            _log.warning("ring_unreadable", path=str(path), error=str(error))
    return sorted(samples, key=lambda sample: sample.before_ns)


def _samples_of(ring: Ring, boot: str, known: Callable[[str], Known | None]) -> list[Sample]:
    port = known(ring.key)
    if ring.boot != boot or port is None or port.counted_by != ring.counted_by:
        return []
    return [
        Sample(ring.key, row.before_ns, row.after_ns, row.reads, row.values)
        for row in ring.rows(since_ns=port.read_until_ns - 1)
    ]
