"""FlapSettings: when an outage is called what."""

import msgspec

from flapd.model.duration import Duration, parse_duration


class FlapSettings(msgspec.Struct, frozen=True):
    drop_after: Duration = parse_duration("4m")
    """An outage this long is a drop."""
