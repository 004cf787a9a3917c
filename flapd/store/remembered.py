"""What the ring remembers: the samples an agent that was killed had not yet committed."""

from collections.abc import Callable
from pathlib import Path

import structlog

from flapd.model.observation import Sample
from flapd.store.ring import RingError, read_ring, ring_files

_log = structlog.get_logger("flapd.ring")


def remembered_samples(
    directory: Path, boot: str, read_until_ns: Callable[[str], int]
) -> list[Sample]:
    """Samples of this boot that began after what `read_until_ns` says of their port, in order."""
    samples: list[Sample] = []
    for path in ring_files(directory):
        try:
            ring = read_ring(path)
        except (RingError, OSError) as error:
            _log.warning("ring_unreadable", path=str(path), error=str(error))
            continue
        if ring.boot == boot:
            samples += (
                Sample(ring.key, row.before_ns, row.after_ns, row.reads, row.values)
                for row in ring.rows(read_until_ns(ring.key))
            )
    samples.sort(key=lambda sample: sample.before_ns)
    return samples
