"""PortFile: one file of a port, what it gave last, and when it is tried again if it gives nothing.

A failing read may cost a line in the kernel's log each time (an NVLink function of
mlx5_core rejects register reads so), and a command of the firmware.
"""

from pathlib import Path

from flapd.core.fabric.parse import parser_of, value_names
from flapd.sources.files import KeptFile

REREGISTERED = "ENODEV"
"""What a descriptor says that was kept from before its device was registered anew."""


LONGEST_VALUE_BYTES = 128


class PortFile(KeptFile):
    """What fails is tried again at its next turn, then after pauses that double."""

    __slots__ = (
        *("name", "parse", "value_names", "raw", "error"),
        *("_longest_pause_ns", "_failed_ns", "_again_ns"),
    )

    def __init__(self, name: str, path: Path, longest_pause_ns: int) -> None:
        super().__init__(path)
        self.name = name
        self.parse = parser_of(name)
        self.value_names = value_names(name)
        self.raw: bytes | None = None
        """What it holds; None where that was never read, or cannot be."""
        self.error: str | None = None
        """Why it cannot be read; None where it can, or was never tried."""
        self._longest_pause_ns = longest_pause_ns
        self._failed_ns = 0
        self._again_ns = 0

    @property
    def is_new(self) -> bool:
        """Nobody has tried to read it yet."""
        return self.raw is None and self.error is None

    def must_wait(self, now_ns: int) -> bool:
        return self.error is not None and now_ns < self._again_ns

    def gave(self, raw: bytes) -> None:
        self.raw, self.error = raw, None

    def forget(self) -> None:
        """It is told by other means: whatever it gives when it is read again is new."""
        self.raw = self.error = None
        self.close()

    def failed(self, error: str, now_ns: int) -> None:
        pause_ns = 2 * (now_ns - self._failed_ns) if self.error is not None else 0
        self._again_ns = now_ns + min(pause_ns, self._longest_pause_ns)
        self._failed_ns = now_ns
        self.raw, self.error = None, error
        self.close()
