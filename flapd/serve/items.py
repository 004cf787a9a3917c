"""Items: what the API tells, field by field. What is not known is None, never 0."""

from typing import Generic, TypeVar

import msgspec

RECORDING_PATH = "/api/v1/recording"
RECORDING_ACTIVE = "X-Flapd-Recording-Active"
"""Header beside the bytes of a recording: 1 while there may be more."""


_Item = TypeVar("_Item")


class Item(msgspec.Struct, frozen=True, kw_only=True):
    """What every item has; of one thing the highest revision holds."""

    id: str
    revision: int
    durable: bool = True
    """It is on disk."""
    node: str


class Listed(msgspec.Struct, Generic[_Item], frozen=True):
    """One page of a list; `next` is its cursor for the one after."""

    items: list[_Item]
    next: str | None = None


class Interval(msgspec.Struct, frozen=True):
    earliest: str
    latest: str


class Seconds(msgspec.Struct, frozen=True):
    """Shortest and longest it can have been."""

    min: float | None
    max: float | None


class Witness(msgspec.Struct, frozen=True):
    name: str | None
    value: int | None
    status: str


class AfterItem(msgspec.Struct, frozen=True):
    """How the port came back."""

    rate_gbps: float
    downgraded: bool


class RepairItem(msgspec.Struct, frozen=True):
    time: str
    note: str


class ChangeItem(msgspec.Struct, frozen=True):
    """What changed about a port, and when."""

    kind: str
    note: str
    time: str


class Peer(msgspec.Struct, frozen=True):
    """The other end of the cable."""

    switch: str | None
    port: str | None


class Module(msgspec.Struct, frozen=True):
    vendor: str | None
    part: str | None
    serial: str | None


class Estimate(msgspec.Struct, frozen=True):
    """None is what has no end."""

    low: float | None
    likely: float | None
    high: float | None


class Table(msgspec.Struct, frozen=True):
    """Samples: `time` is the first column, a counter that was not read is null."""

    columns: list[str]
    rows: list[list[int | float | str | None]]


class PortItem(msgspec.Struct, frozen=True, kw_only=True):
    """One port. Names and values of enumerations are strings: a reader accepts new ones."""

    id: str
    revision: int = 1
    durable: bool = True
    node: str | None = None
    port: str
    device: str
    number: int
    guid: str | None
    pci: str | None
    driver: str | None
    link_layer: str
    netdev: str | None
    state: str | None
    phys_state: str | None
    rate_gbps: float | None
    width: str | None
    expected_rate_gbps: float | None = None
    downgraded: bool | None = None
    bit_error_ratio: float | None = None
    bit_error_level: str = "good"
    up: bool | None
    watched: bool
    ever_up: bool
    witness: Witness
    counters: dict[str, int | None]
    saturated: list[str]
    flapping: bool | None = None
    penalty: float | None = None
    grace: bool = False
    flaps_24h: int | None
    last_down: Interval | None
    readable: bool
    stale_seconds: float | None
    maintenance: bool | None = None
    members: list[str] = []
    repaired: RepairItem | None = None
    peer: Peer | None = None
    module: Module | None = None
    sources: dict[str, str]


class ChangedPort(PortItem, frozen=True, kw_only=True):
    """A port as it is now, with what changed."""

    change: ChangeItem


class GapItem(msgspec.Struct, frozen=True):
    """Of a stream: events between these two are not in the journal any more."""

    after: int
    """The number that was to be resumed after."""
    next: int
    """The number of the next event that there is, or will be."""


class FlapItem(Item, frozen=True, kw_only=True):
    """One outage, as its highest revision tells it."""

    port: str
    guid: str | None
    member: str | None = None
    kind: str
    status: str
    cause: str
    seen: str
    layer: str
    down: Interval
    up: Interval | None
    down_seconds: Seconds
    span_seconds: float | None
    count: int
    count_at_least: bool
    settled: bool
    after: AfterItem | None = None
    reason: str | None = None
    evidence: list[str]
    boot: str
    grace: bool = False
    black_box: bool | None = None
    """None: not told here. Of a hub each node knows of its own."""
    incidents: list[str] = []
    gpu_seconds: Estimate | None = None


class BlackBoxItem(Table, frozen=True):
    pending: bool
    """More of it is to come."""
    incomplete: bool
    """Samples of some of its time were lost, expired, or are damaged."""


class FlapDetail(FlapItem, frozen=True, kw_only=True):
    black_box_data: BlackBoxItem | None = None


class FlapList(Listed[FlapItem], frozen=True):
    """Of /flaps."""


class PortList(Listed[PortItem], frozen=True):
    expected: int | None = None
    """Ports this node should have: as configured, else those that were up at some time."""
    found: int | None = None
    """Ports that discovery finds now; None until it has told."""
    blind: list[str] = []
    """Devices of which it cannot be told now which ports they have."""


class RecordingItem(msgspec.Struct, frozen=True):
    """The recording that runs or ran last."""

    path: str
    bytes: int
    active: bool
    until: str | None
    """None where it is over."""
