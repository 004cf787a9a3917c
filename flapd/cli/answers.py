"""What the commands need of the agent's answers; whatever else is in them is passed over."""

import msgspec


class ErrorBody(msgspec.Struct, frozen=True):
    code: str
    message: str
    parameter: str | None = None
    """What of the question was wrong."""


class ErrorAnswer(msgspec.Struct, frozen=True):
    """Every answer that is an error."""

    error: ErrorBody


class Planned(msgspec.Struct, frozen=True):
    """Planned work; `port` None = all ports."""

    port: str | None
    until: str
    reason: str


class InForce(msgspec.Struct, frozen=True):
    """The answer of /maintenance."""

    maintenance: list[Planned]


class Sampler(msgspec.Struct, frozen=True):
    restarts: int
    stuck: dict[str, float] = {}
    """Device -> seconds its reader has waited in one read."""
    slowed: dict[str, int] = {}
    """Device -> how many times slower than configured it is read."""


class History(msgspec.Struct, frozen=True):
    path: str
    bytes: int | None
    durable: bool
    events_not_durable: int


class PortCounts(msgspec.Struct, frozen=True):
    found: int
    expected: int
    watched: int
    up: int


class Recording(msgspec.Struct, frozen=True):
    until: str | None
    """None where it is over."""


class Status(msgspec.Struct, frozen=True):
    """The answer of /status."""

    version: str
    node: str
    uptime_seconds: float
    boot: str
    config: str
    config_ok: bool
    reasons: list[str]
    """Why it is not ready."""
    sources: dict[str, bool]
    """Source -> it can read at least one port."""
    sampler: Sampler
    history: History
    recording: Recording | None
    ports: PortCounts
    maintenance: list[Planned]
    observations_refused: int = 0
