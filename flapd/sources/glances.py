"""Glances: fast sweeps over a link at rest, read now and worked out later.

Between two wakes of the sampler others push it out of the caches, and then the first thing
done for a port costs six times what it costs the second time. So of a link that does not
move a fast sweep is no more than its reads; what they gave is worked out by the next sweep
of another tier, in which everything of this port is at hand anyway.
"""

import time
from collections.abc import Callable, Sequence
from os import pread
from typing import NamedTuple

from flapd.model.times import MILLISECOND_NS
from flapd.sources.port_file import LONGEST_VALUE_BYTES, PortFile

KEPT_NS = 600 * MILLISECOND_NS
"""A glance is worked out after so long, where no other sweep comes before."""


class Glance(NamedTuple):
    """One fast sweep in which the link did not move."""

    before_ns: int
    after_ns: int
    raws: list[bytes]
    """What the files gave that are not of the link."""


class Glances:
    """Of one port; used from one thread at a time."""

    def __init__(
        self,
        link: Sequence[PortFile],
        others: Sequence[PortFile],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        """`link` are those files of the fast tier that tell of the link."""
        self.others = others
        self._link = link
        self._now_ns = now_ns
        self._taken: list[Glance] = []

    def glance(self) -> bool:
        """False where it takes a whole sweep: the link moved, a file fails, or much was kept."""
        before_ns = self._now_ns()
        if self._taken and before_ns - self._taken[0].before_ns > KEPT_NS:
            return False
        try:
            for file in self._link:  # before the others, as on any sweep: the witness first
                if pread(file.fd, LONGEST_VALUE_BYTES, 0) != file.raw:
                    return False
            raws = [pread(file.fd, LONGEST_VALUE_BYTES, 0) for file in self.others]
        except OSError:
            return False
        self._taken.append(Glance(before_ns, self._now_ns(), raws))
        return True

    def take(self) -> list[Glance]:
        """Those that were not worked out yet, oldest first; once."""
        if not self._taken:
            return []
        taken, self._taken = self._taken, []
        return taken
