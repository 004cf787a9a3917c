"""What the commands need of the agent's answers; whatever else is in them is passed over.

An agent of another version may leave out what it does not know: only that is required
without which nothing could be said.
"""

import msgspec


class ErrorBody(msgspec.Struct, frozen=True):
    code: str
    message: str
    parameter: str | None = None
    """What of the question was wrong."""


class ErrorAnswer(msgspec.Struct, frozen=True):
    """Every answer that is an error."""

    error: ErrorBody


class Interval(msgspec.Struct, frozen=True):
    earliest: str
    latest: str


class Seconds(msgspec.Struct, frozen=True):
    """Shortest and longest it can have been."""

    min: float | None = None
    max: float | None = None


class Witness(msgspec.Struct, frozen=True):
    name: str | None
    value: int | None
    status: str


class Repair(msgspec.Struct, frozen=True):
    time: str
    note: str = ""


class Module(msgspec.Struct, frozen=True):
    vendor: str | None = None
    part: str | None = None
    serial: str | None = None


class PortAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One port."""

    port: str
    watched: bool
    readable: bool
    ever_up: bool | None = None
    node: str | None = None
    up: bool | None = None
    guid: str | None = None
    pci: str | None = None
    driver: str | None = None
    link_layer: str | None = None
    netdev: str | None = None
    state: str | None = None
    phys_state: str | None = None
    rate_gbps: float | None = None
    width: str | None = None
    expected_rate_gbps: float | None = None
    downgraded: bool | None = None
    witness: Witness | None = None
    saturated: list[str] = []
    flapping: bool | None = None
    penalty: float | None = None
    grace: bool = False
    flaps_24h: int | None = None
    last_down: Interval | None = None
    maintenance: bool | None = None
    members: list[str] = []
    repaired: Repair | None = None
    module: Module | None = None
    sources: dict[str, str] = {}


class PortsAnswer(msgspec.Struct, frozen=True):
    """The answer of /ports."""

    items: list[PortAnswer]
    expected: int | None = None
    """How many this node should have."""
    found: int | None = None
    """How many there are; None where it has not been found out yet."""
    blind: list[str] = []
    """Devices of which it cannot be told now which ports they have."""
    next: str | None = None
    """There are more ports than these."""


class Spread(msgspec.Struct, frozen=True):
    """None is what has no end."""

    low: float | None = None
    likely: float | None = None
    high: float | None = None


class After(msgspec.Struct, frozen=True):
    """How the port came back."""

    rate_gbps: float
    downgraded: bool = False


class FlapAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """One outage."""

    id: str
    port: str
    down: Interval
    up: Interval | None = None
    durable: bool = True
    node: str | None = None
    guid: str | None = None
    member: str | None = None
    kind: str | None = None
    status: str | None = None
    cause: str | None = None
    seen: str | None = None
    layer: str | None = None
    down_seconds: Seconds = Seconds()
    span_seconds: float | None = None
    count: int | None = None
    count_at_least: bool = False
    after: After | None = None
    reason: str | None = None
    evidence: list[str] = []
    boot: str | None = None
    grace: bool = False
    incidents: list[str] = []
    gpu_seconds: Spread | None = None
    """None also where who asks may not see what belongs to jobs."""


class FlapsAnswer(msgspec.Struct, frozen=True):
    """The answer of /flaps."""

    items: list[FlapAnswer]
    next: str | None = None


class BlackBox(msgspec.Struct, frozen=True):
    """Samples around an outage; the first column is `time`."""

    columns: list[str]
    rows: list[list[int | float | str | None]]
    pending: bool = False
    """More of it is to come."""
    incomplete: bool = False
    """Samples of some of its time were lost, expired, or are damaged."""


class FlapDetail(FlapAnswer, frozen=True, kw_only=True):
    """The answer of /flaps/{id}."""

    black_box_data: BlackBox | None = None


class Planned(msgspec.Struct, frozen=True):
    """Planned work; `port` None = all ports."""

    port: str | None
    until: str
    reason: str = ""


class InForce(msgspec.Struct, frozen=True):
    """The answer of /maintenance."""

    maintenance: list[Planned]


class JobReader(msgspec.Struct, frozen=True):
    restarts: int = 0
    files: int = 0
    behind_bytes: int = 0
    failures: dict[str, str] = {}
    """What cannot be read now, and why."""


class Sampler(msgspec.Struct, frozen=True):
    restarts: int = 0
    stuck: dict[str, float] = {}
    """Device -> seconds its reader has waited in one read."""
    slowed: dict[str, int] = {}
    """Device -> how many times slower than configured it is read."""
    rings_missing: dict[str, int] = {}
    """Device -> rings of its ports that could not be made."""


class History(msgspec.Struct, frozen=True):
    path: str
    durable: bool
    bytes: int | None = None
    events_not_durable: int | None = None
    events_dropped: int = 0
    """Events that it will never have."""


class Fleet(msgspec.Struct, frozen=True):
    connected: bool
    server: str | None = None
    reason: str | None = None
    """Why it is not connected, or what is in the way."""
    outbox_events: int = 0
    events_lost: int = 0


class PortCounts(msgspec.Struct, frozen=True):
    expected: int | None = None


class Recording(msgspec.Struct, frozen=True):
    until: str | None = None
    """None where it is over."""


class RunningJob(msgspec.Struct, frozen=True):
    job: str
    kind: str | None = None
    world_size: int | None = None
    local_ranks: int | None = None
    since: str | None = None
    stands_still: bool = False
    blind_to: list[str] = []


class OpenIncident(msgspec.Struct, frozen=True):
    id: str
    verdict: str
    job: str | None = None
    begin: str | None = None


class Jobs(msgspec.Struct, frozen=True):
    running: list[RunningJob] = []
    blind_to: list[str] = []
    """What of the node's processes cannot be seen."""
    incidents: list[OpenIncident] | None = None
    """Those that go on; None: not known."""


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of /status."""

    version: str
    node: str
    uptime_seconds: float
    history: History
    config_ok: bool = True
    restart_needed: list[str] = []
    """Sections that changed and are not in force before a restart."""
    sources: dict[str, bool] = {}
    """Source -> it can read at least one port."""
    sampler: Sampler = Sampler()
    job_reader: JobReader = JobReader()
    recording: Recording | None = None
    ports: PortCounts = PortCounts()
    jobs: Jobs | None = None
    """None: this agent knows nothing of jobs."""
    maintenance: list[Planned] = []
    observations_refused: int = 0
    fleet: Fleet | None = None
    """None: it tells no fleet."""
