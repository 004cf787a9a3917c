"""Capabilities of a process, as the kernel shows them."""

import re

LAID_DOWN = ("CapInh", "CapPrm", "CapEff", "CapAmb")
"""Of who has laid down all, these are empty."""


def sets_of(status: str) -> dict[str, int]:
    """By name, of /proc/PID/status (proc(5))."""
    told = re.findall(r"^(Cap\w+):\s*(\w+)$", status, re.MULTILINE)
    return {name: int(value, 16) for name, value in told}
