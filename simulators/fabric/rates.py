"""Rate: how fast a link runs, as the kernel writes it.

Names of speeds: drivers/infiniband/core/sysfs.c (rate_show); Gb/s of one lane.
"""

import msgspec

_SPEEDS = {
    2.5: "SDR",
    5.0: "DDR",
    10.0: "QDR",
    14.0: "FDR",
    25.0: "EDR",
    50.0: "HDR",
    100.0: "NDR",
    200.0: "XDR",
}


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Gb/s of all lanes together, and the number of lanes."""

    gbps: float
    lanes: int = 4

    def __post_init__(self) -> None:
        if self.lanes not in {1, 2, 4, 8, 12}:
            raise ValueError(f"a link has 1, 2, 4, 8 or 12 lanes, not {self.lanes}")
        if self.gbps / self.lanes not in _SPEEDS:
            raise ValueError(f"no link of {self.lanes} lanes runs at {self.gbps:g} Gb/s")

    @property
    def line(self) -> str:
        return f"{self.gbps:g} Gb/sec ({self.lanes}X {_SPEEDS[self.gbps / self.lanes]})"

    @property
    def mbps(self) -> int:
        return round(self.gbps * 1000)
