"""PortReader: sweeps the files of one port and says what it saw, and between when.

The raw bytes are compared before anything is parsed: most files have not moved.
"""

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from flapd.core.fabric.catalogue import (
    ACTIVE_STATES,
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    STATE,
    Tier,
)
from flapd.core.fabric.parse import UnreadableError, parser_of, value_names
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    Sample,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.discovery import netdev_directory
from flapd.sources.files import KeptFile, reason_of
from flapd.sources.plan import STATE_FILES, Plan

STATE_CLOSELY_NS = 60 * SECOND_NS
"""After the link moved, its state is read on every sweep for this long,"""
STATE_LATER_NS = SECOND_NS
"""and then this often while it is still down."""

_CARRIER_TRIES = 3


class Sweep(msgspec.Struct, frozen=True):
    """One reading of one tier: everything in it was read between these moments."""

    before_ns: int
    after_ns: int
    reads: int


class PortReader:
    """Reads one port; used from one thread."""

    def __init__(
        self,
        sysfs: Path,
        port: Port,
        plan: Plan,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.port = port
        self.values: dict[str, int] = {}
        """Present value of everything that can be read."""
        self._tiers = plan.tiers
        self._files = {name: KeptFile(path) for name, path in plan.paths.items()}
        if port.witness == CARRIER_DOWNS and port.netdev is not None:
            self._files[CARRIER] = KeptFile(netdev_directory(sysfs, port.netdev) / "carrier")
        self._parsers = {name: parser_of(name) for name in self._files}
        self._raw: dict[str, bytes | str] = {}
        """What each file gave last: its bytes, or why it gave none."""
        self._unsent_values: dict[str, int] = {}
        self._unsent_errors: dict[str, str] = {}
        self._unsent_reads = 0
        self._unsent_since_ns: int | None = None
        self._is_first = True
        self._was_active = True
        self._closely_until_ns = 0
        self._state_at_ns = 0
        self._now_ns = now_ns

    def sweep(self, tier: Tier, *, closely: bool = False) -> Sweep:
        """Reads one tier; `closely` has the state read with it."""
        before_ns = self._now_ns()
        reads = {
            "fast": self._sweep_fast,
            "slow": self._sweep_slow,
            "rare": self._sweep_rare,
        }[tier](before_ns, closely)
        if self._is_first:
            reads |= READ_FIRST | self._read_carrier()
        return Sweep(before_ns, self._now_ns(), reads)

    def sample(self, sweep: Sweep) -> Sample:
        """What this sweep and those before it that could not be sent have to tell.

        Whether the carrier fits its counts is true of one sweep alone.
        """
        self._unsent_reads = sweep.reads | (self._unsent_reads & ~READ_CARRIER)
        if self._unsent_since_ns is None:
            self._unsent_since_ns = sweep.before_ns
        return Sample(
            key=self.port.key,
            before_ns=self._unsent_since_ns,
            after_ns=sweep.after_ns,
            reads=self._unsent_reads,
            values=self._unsent_values,
            errors=self._unsent_errors,
        )

    def sent(self) -> None:
        """The last sample has arrived: from now on only what differs from it is told."""
        self._unsent_values, self._unsent_errors = {}, {}
        self._unsent_reads, self._unsent_since_ns = 0, None
        self._is_first = False

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _sweep_fast(self, now_ns: int, closely: bool) -> int:
        """The witness first: a state read after it can be newer than the count, never older."""
        witness = self.port.witness or ""
        before = self._raw.get(witness)
        readable = {name: self._read(name) for name in self._tiers["fast"]}
        if self._raw.get(witness) != before:
            self._closely_until_ns = now_ns + STATE_CLOSELY_NS
        reads = READ_WITNESS if readable.get(witness) else 0
        if closely or self._wants_state(now_ns):
            reads |= self._read_state(now_ns)
        return reads

    def _sweep_slow(self, now_ns: int, closely: bool) -> int:  # noqa: ARG002 - as the others
        """The state first, so that many counters do not come between it and the witness."""
        reads = self._read_state(now_ns)
        for name in self._tiers["slow"]:
            self._read(name)
        return reads

    def _sweep_rare(self, now_ns: int, closely: bool) -> int:  # noqa: ARG002 - as the others
        for name in self._tiers["rare"]:
            self._read(name)
        return self._read_carrier()

    def _read(self, name: str) -> bool:
        try:
            raw = self._files[name].read()
        except OSError as error:
            self._failed(name, reason_of(error))
            return False
        if raw == self._raw.get(name):
            return True
        try:
            values = self._parsers[name](raw)
        except UnreadableError as error:
            self._failed(name, str(error))
            return False
        self._raw[name] = raw
        self.values.update(values)
        self._unsent_values.update(values)
        for value_name in values:
            self._unsent_errors.pop(value_name, None)
        return True

    def _failed(self, name: str, reason: str) -> None:
        if self._raw.get(name) == reason:
            return
        self._raw[name] = reason
        for value_name in value_names(name):
            self.values.pop(value_name, None)
            self._unsent_values.pop(value_name, None)
            self._unsent_errors[value_name] = reason

    def _read_state(self, now_ns: int) -> int:
        self._state_at_ns = now_ns
        readable = [self._read(name) for name in STATE_FILES]
        if not readable[0]:
            return 0
        if self._was_active and not self._is_active():
            self._closely_until_ns = now_ns + STATE_CLOSELY_NS
        self._was_active = self._is_active()
        return READ_STATE

    def _is_active(self) -> bool:
        return self.values.get(STATE) in ACTIVE_STATES

    def _wants_state(self, now_ns: int) -> bool:
        """Where the carrier counts tell everything, the state is no more than a label."""
        if self.port.witness == CARRIER_DOWNS:
            return False
        if now_ns < self._closely_until_ns or self.port.witness is None:
            return True
        return not self._is_active() and now_ns - self._state_at_ns >= STATE_LATER_NS

    def _read_carrier(self) -> int:
        """The carrier with its counts, read again until none of them moved in between.

        Reading `carrier` takes the RTNL lock, unlike its counts: seldom, therefore.
        """
        if CARRIER not in self._files:
            return 0
        counts = (CARRIER_DOWNS, CARRIER_UPS)
        for _ in range(_CARRIER_TRIES):
            before = [self._raw.get(name) for name in counts]
            if not all([self._read(CARRIER), *map(self._read, counts)]):
                return 0
            if before == [self._raw.get(name) for name in counts]:
                return READ_CARRIER | READ_WITNESS
        return 0
