"""Works: planned work that goes on, of all ports or of some."""

from collections.abc import Iterator

import msgspec
from msgspec.structs import replace

from flapd.core.fabric.view import MaintenanceView
from flapd.model.observation import Maintenance


class Works(msgspec.Struct):
    """By port key; None = all ports. Times are monotonic."""

    planned: dict[str | None, Maintenance] = msgspec.field(default_factory=dict)

    def plan(self, work: Maintenance) -> None:
        """In place of what was planned for the same; an end that is past ends it."""
        if work.until_ns > work.monotonic_ns:
            self.planned[work.key] = work
        elif work.key is None:
            self.planned.clear()
        else:
            self.planned.pop(work.key, None)

    def end_due(self, now_ns: int) -> None:
        self.planned = {key: work for key, work in self.planned.items() if work.until_ns > now_ns}

    def begin_boot(self, shift_ns: int) -> None:
        """What was at `t` of the old clock is at `t + shift_ns` of the new one."""
        self.planned = {
            key: replace(work, until_ns=work.until_ns + shift_ns)
            for key, work in self.planned.items()
        }

    def of(self, port_key: str) -> Maintenance | None:
        """What goes on at this port, or at the bond it is a member of."""
        bond, _, _ = port_key.rpartition("/")
        found = (self.planned.get(key) for key in (port_key, bond, None))
        return next((work for work in found if work is not None), None)

    def views(self, wall_offset_ns: int) -> Iterator[MaintenanceView]:
        for key, work in self.planned.items():
            yield MaintenanceView(key, work.until_ns + wall_offset_ns, work.reason)
