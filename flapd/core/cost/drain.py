"""Drain: when taking a node out costs less than its flaps."""

from flapd.core.cost.price import HOUR_SECONDS

_YEAR_HOURS = 24 * 365.25

PRIOR_HOURS = 168.0
PRIOR_FLAPS = 0.15 / _YEAR_HOURS * PRIOR_HOURS
"""A week's worth of what an ordinary port does: 0.15 flaps a year."""
ENOUGH_FLAPS = 5
"""From this many on they speak for themselves."""


def drain_gpu_seconds(
    *,
    gpus: int,
    checkpoint_cost_seconds: float,
    restart_seconds: float,
    idle_gpus: int = 0,
    repair_seconds: float = 0.0,
) -> float:
    """Of a planned drain after a checkpoint; `idle_gpus` wait for the repair, 0 with a spare."""
    return gpus * (checkpoint_cost_seconds + restart_seconds) + idle_gpus * repair_seconds


def break_even_flaps(drain: float, per_flap: float) -> float | None:
    """Flaps after which the drain would have paid; None = never. Both in GPU-seconds."""
    return drain / per_flap if per_flap > 0 else None


def break_even_per_second(drain: float, per_flap: float, remaining_seconds: float) -> float | None:
    """The rate above which a drain pays, for a job that runs on for `remaining_seconds`."""
    flaps = break_even_flaps(drain, per_flap)
    return None if flaps is None or remaining_seconds <= 0 else flaps / remaining_seconds


def drain_pays(
    *, drain: float, per_flap: float, flaps_per_hour: float, remaining_seconds: float
) -> bool:
    return flaps_per_hour / HOUR_SECONDS * remaining_seconds * per_flap > drain


def posterior_per_hour(flaps: int, hours: float) -> float:
    """Expected flaps an hour of a port that showed `flaps` in `hours` (Gamma-Poisson)."""
    return (PRIOR_FLAPS + flaps) / (PRIOR_HOURS + hours)


def expected_per_hour(flaps: int, hours: float) -> float:
    """What to reckon with: the prior where there is little to go by, else what was counted."""
    return flaps / hours if flaps >= ENOUGH_FLAPS else posterior_per_hour(flaps, hours)
