"""Rings with samples in them, written as the sampler does."""

from collections.abc import Callable, Iterable
from pathlib import Path

from flapd.core.fabric.catalogue import LINK_DOWNED, STATE, Tier
from flapd.model.observation import READ_STATE, READ_WITNESS
from flapd.model.times import SECOND_NS
from flapd.store.ring import RingWriter, ring_path

KEY = "0x1/1"
BOOT = "boot-1"
TRAFFIC = "counters/port_xmit_data"
COLUMNS: dict[Tier, tuple[str, ...]] = {
    "fast": (LINK_DOWNED, TRAFFIC, STATE),
    "slow": (STATE, "counters/symbol_error"),
    "rare": ("counters/port_rcv_errors",),
}


def ring_of(
    directory: Path, tier: Tier = "fast", *, key: str = KEY, boot: str = BOOT, rows: int = 9000
) -> RingWriter:
    return RingWriter(
        ring_path(directory, key, tier),
        key=key,
        counted_by="link_downed",
        tier=tier,
        columns=COLUMNS[tier],
        rows=rows,
        boot=boot,
    )


def fill(
    directory: Path,
    seconds: Iterable[float],
    tier: Tier = "fast",
    *,
    key: str = KEY,
    boot: str = BOOT,
    value: Callable[[int], int] = lambda ns: ns // SECOND_NS,
) -> None:
    """A row for each of these seconds; each value is `value` of the time in ns."""
    ring = ring_of(directory, tier, key=key, boot=boot)
    for second in seconds:
        ns = round(second * SECOND_NS)
        values = dict.fromkeys(COLUMNS[tier], value(ns))
        ring.append(ns, ns + 1000, READ_STATE | READ_WITNESS, values)
    ring.close()


def every(step: float, first: float, last: float) -> list[float]:
    """From `first` to `last`, the last left out."""
    return [first + number * step for number in range(round((last - first) / step))]
