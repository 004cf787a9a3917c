"""FlapSettings: when an outage is called what, and when a port is called flapping."""

from typing import Annotated

import msgspec

from flapd.model.duration import Duration, parse_duration

_Score = Annotated[float, msgspec.Meta(gt=0)]


class FlapSettings(msgspec.Struct, frozen=True):
    merge_within: Duration = parse_duration("2s")
    """Downs closer than this, from up to the next down, are one flap."""
    burst_max: Duration = parse_duration("60s")
    """A flap takes no more downs this long after its first."""
    drop_after: Duration = parse_duration("4m")
    """An outage this long is a drop."""
    boot_grace: Duration = parse_duration("300s")
    """After a boot links train: downs are recorded, not alerted."""
    penalty: _Score = 1000.0
    """Of each down."""
    half_life: Annotated[Duration, msgspec.Meta(extra={"at_least": "1s"})] = parse_duration("6h")
    """In which the penalty falls to half."""
    suspect: _Score = 2000.0
    """A port with this penalty is flapping,"""
    clear: _Score = 750.0
    """until its penalty has fallen to this."""
