"""What a ring row holds that was read in its own sweep; the rest was known from before."""

from flapd.core.fabric.catalogue import (
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    FLAGS,
    LINK_DOWNED,
    PHYSICAL_STATE,
    RATE_MBPS,
    STATE,
    WIDTH_LANES,
)
from flapd.model.observation import READ_CARRIER, READ_RATE, READ_STATE, READ_WITNESS
from flapd.store.ring_layout import RingRow

_NEVER = 0
_READ_AS = {
    STATE: ("", READ_STATE),
    PHYSICAL_STATE: ("", READ_STATE),
    CARRIER: ("", READ_CARRIER),
    CARRIER_DOWNS: ("fast", READ_WITNESS),
    CARRIER_UPS: ("fast", READ_WITNESS),
    LINK_DOWNED: ("fast", READ_WITNESS),
    FLAGS: ("slow", _NEVER),
    RATE_MBPS: ("rare", READ_RATE),
    WIDTH_LANES: ("rare", READ_RATE),
}
"""What rows of several tiers hold: the tier that reads it on each sweep, and what tells that
another did. All else is read by the tier in whose rows it stands."""


def values_as_read(tier: str, row: RingRow) -> dict[str, int]:
    """The row's values without those that an earlier sweep read."""
    return {
        name: value
        for name, value in row.values.items()
        if name not in _READ_AS or tier == _READ_AS[name][0] or row.reads & _READ_AS[name][1]
    }
