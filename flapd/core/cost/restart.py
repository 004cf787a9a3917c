"""Restart: how jobs come back after a death."""

import msgspec
from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs
from flapd.model.given import exactly


class Restart(msgspec.Struct, frozen=True):
    propagation_seconds: float
    restart_seconds: float
    checkpoint_age_seconds: float


RESTARTS: dict[str, Restart] = {
    # A checkpoint in memory, ranks initialise again in place.
    "in-process": Restart(10.0, 45.0, 5.0),
    "automated": Restart(15.0, 300.0, 900.0),
    # 68 min: the median that Unicron (arXiv 2401.00134) and R2CCL (arXiv 2512.25059) report.
    "manual": Restart(15.0, 4080.0, 900.0),
}


def with_restart(inputs: Inputs, preset: str) -> Inputs:
    """The inputs with all three of a preset of RESTARTS."""
    chosen = RESTARTS[preset]
    return replace(
        inputs,
        **{name: exactly(getattr(chosen, name), "preset") for name in Restart.__struct_fields__},
    )
