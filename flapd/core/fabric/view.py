"""PortView and Snapshot: what may be shown of the ports, published after each commit."""

from typing import Literal, get_args

import msgspec
from msgspec.structs import replace

from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.core.incident.view import IncidentsView
from flapd.core.job.view import JobsView
from flapd.model.event import Event
from flapd.model.port import Port
from flapd.model.times import Edge

WitnessStatus = Literal["live", "unproven", "saturated", "lying", "unreadable", "none"]
WITNESS_STATUSES: tuple[WitnessStatus, ...] = get_args(WitnessStatus)

COUNTED_CAUSES = ("link", "subnet", "unknown")
"""Causes that go into totals: what a link or its subnet did, not what people or reboots did."""

NOT_READ = "not read"
"""Why a value that was known once is not known now."""

DOWN_SECONDS_BUCKETS = (0.1, 0.3, 1, 2, 4, 8, 15, 30, 60, 120, 240, 600)


class LinkTotals(msgspec.Struct):
    """What this port did since flapd first saw it; continues over restarts."""

    downs: dict[str, int] = msgspec.field(default_factory=lambda: dict.fromkeys(COUNTED_CAUSES, 0))
    flaps: int = 0
    drops: int = 0
    down_ns: int = 0
    """Sum over closed outages of the middle of [shortest, longest] possible down time."""

    @property
    def ended(self) -> int:
        """Outages that ended by themselves."""
        return self.flaps + self.drops


class DownHistogram(msgspec.Struct):
    """Closed outages of all ports by down time (the middle of its interval)."""

    counts: list[int] = msgspec.field(default_factory=lambda: [0] * (len(DOWN_SECONDS_BUCKETS) + 1))
    """One a bucket, not cumulative; the last is what passed every bound."""
    sum_ns: int = 0


class PortView(msgspec.Struct, frozen=True):
    """One port as it stands after the last commit. None = not known."""

    port: Port
    present: bool
    """Discovery finds it now."""
    up: bool | None
    ever_up: bool
    values: dict[str, int]
    """Last value of each file read, by catalogue name; what cannot be read is not in it."""
    errors: dict[str, str]
    """What cannot be read, and why."""
    witness_value: int | None
    witness_status: WitnessStatus
    witness_resets: int
    """Times it was found lower than before."""
    saturated: tuple[str, ...]
    """Counters that stand at their stop and count no further."""
    readable: bool
    """What tells of the link was read, and not long ago."""
    last_read_ns: int | None
    """Monotonic time at which the last reading of witness or state ended."""
    down_since: Edge | None
    """Down edge of the open outage; None = none is open."""
    last_down: Edge | None
    """Of the last down that ended and had no cause on this node."""
    last_down_ns: int | None
    """Its down time (the middle of its interval)."""
    totals: LinkTotals
    revision: int = 1
    """Of the port itself, not of its counters; as its last event has it."""
    watched: bool = True
    """Present, and it was up at some time: a port that never was is only listed."""
    flapping: bool = False
    """Damped: its penalty passed `suspect` and did not fall to `clear` since."""
    penalty: float = 0.0
    expected_rate_mbps: int | None = None
    downgraded: bool | None = None
    """Slower than expected while it is up; None where either rate is not known."""
    maintenance: bool = False
    grace: bool = False
    """Soon after a boot: downs are recorded, not alerted."""
    repaired: "Repair | None" = None
    """The last repair somebody told of."""
    bit_error_ratio: float | None = None
    """Errors left after correction, of the last 12 minutes; None where that cannot be told."""
    bit_error_level: str = "good"
    """`good`, `warn` or `critical`."""
    wants_state: bool = False
    """Its witness cannot be counted on: the state must be read on every fast sweep."""
    counter: str | None = None
    """By which its downs are counted: the witness, or what counts on where that one stops."""
    module: ModuleIdentity | None = None
    """Transceiver or cable that was in it last."""


class Repair(msgspec.Struct, frozen=True):
    unix_ns: int
    note: str


class MaintenanceView(msgspec.Struct, frozen=True):
    """Planned work that goes on."""

    key: str | None
    """None = all ports."""
    until_unix_ns: int
    reason: str


def with_totals_of(durable: "Snapshot", now: "Snapshot") -> "Snapshot":
    """What is known now, with the totals of what is on disk."""
    totals = {view.port.key: view.totals for view in durable.ports}
    return replace(
        now,
        ports=tuple(
            replace(view, totals=totals.get(view.port.key, LinkTotals())) for view in now.ports
        ),
        down_histogram=durable.down_histogram,
        jobs=replace(now.jobs, totals=durable.jobs.totals),
        incidents=replace(now.incidents, totals=durable.incidents.totals),
    )


class Snapshot(msgspec.Struct, frozen=True):
    """Everything the engine shows, at one moment."""

    ports: tuple[PortView, ...] = ()
    down_histogram: DownHistogram = msgspec.field(default_factory=DownHistogram)
    stuck_readers: dict[str, int] = {}
    """Device -> monotonic time since which its reader waits in one read."""
    blind: frozenset[str] = frozenset()
    """Devices of which it cannot be told now which ports they have."""
    boot: str = ""
    wall_offset_ns: int | None = None
    """Unix time minus monotonic time; None before the first clock pair."""
    maintenance: tuple[MaintenanceView, ...] = ()
    ports_expected: int = 0
    """As configured, else the ports that were up at some time and not gone for long."""
    is_scouted: bool = False
    """Discovery has told which ports are there."""
    jobs: JobsView = JobsView()
    incidents: IncidentsView = IncidentsView()
    undurable: tuple[Event, ...] = ()
    """What the disk has not taken yet, as it stands; totals do not hold it."""
