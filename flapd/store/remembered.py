"""What the ring remembers: the samples an agent that was killed had not yet committed."""

from collections.abc import Callable
from pathlib import Path

import structlog

from flapd.model.observation import Sample
from flapd.store.ring import Ring, RingError, read_ring, ring_files

_log = structlog.get_logger("flapd.ring")


def remembered_samples(
    directory: Path, boot: str, read_until_ns: Callable[[str], int]
) -> list[Sample]:
    """Samples of this boot that began after what `read_until_ns` says of their port, in order."""
    samples: list[Sample] = []
    for path in ring_files(directory):
        try:
            samples += _samples_of(read_ring(path), boot, read_until_ns)
        except (RingError, OSError) as error:
            _log.warning("ring_unreadable", path=str(path), error=str(error))
    return sorted(samples, key=lambda sample: sample.before_ns)


def _samples_of(ring: Ring, boot: str, read_until_ns: Callable[[str], int]) -> list[Sample]:
    if ring.boot != boot:
        return []
    return [
        Sample(ring.key, row.before_ns, row.after_ns, row.reads, row.values)
        for row in ring.rows(read_until_ns(ring.key))
    ]
