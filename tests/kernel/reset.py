"""Reset: what the machine with systemd told before it was reset, and after it came back."""

from pathlib import Path
from typing import Any, NamedTuple


class Reset(NamedTuple):
    before: dict[str, Any]
    after: dict[str, Any]
    history: Path
