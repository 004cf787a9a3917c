"""PortReader: sweeps the files of one port and says what it saw, and between when.

The raw bytes are compared before anything is parsed: most files have not moved.
"""

import time
from collections.abc import Callable
from pathlib import Path

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
    READ_RARE,
    READ_SLOW,
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
_TIER_FLAG: dict[Tier, int] = {"fast": 0, "slow": READ_SLOW, "rare": READ_RARE}


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
        self._tiers = plan.tiers
        self._files = {name: KeptFile(path) for name, path in plan.paths.items()}
        if port.witness == CARRIER_DOWNS and port.netdev is not None:
            self._files[CARRIER] = KeptFile(netdev_directory(sysfs, port.netdev) / "carrier")
        self._parsers = {name: parser_of(name) for name in self._files}
        self._state_was_active = True
        self._raw: dict[str, bytes | str] = {}
        """What each file gave last: its bytes, or why it gave none."""
        self.values: dict[str, int] = {}
        """Present value of everything that can be read."""
        self._unsent_values: dict[str, int] = {}
        self._unsent_errors: dict[str, str] = {}
        self._first = True
        self._closely_until_ns = 0
        self._state_at_ns = 0
        self._now_ns = now_ns

    def sweep(self, tier: Tier) -> Sample:
        """Reads one tier; the sample holds what has changed since the last one that was sent."""
        before_ns = self._now_ns()
        witness_before = self._raw.get(self.port.witness or "")
        reads = self._read_all(self._tiers[tier])
        if tier != "fast":
            reads = _TIER_FLAG[tier]
        elif self._raw.get(self.port.witness or "") != witness_before:
            self._closely_until_ns = before_ns + STATE_CLOSELY_NS
        if tier == "slow" or (tier == "fast" and self._wants_state(before_ns)):
            reads |= self._read_state(before_ns)
        if tier == "rare" or self._first:
            reads |= self._read_carrier()
        if self._first:
            reads |= READ_FIRST
        return Sample(
            key=self.port.key,
            before_ns=before_ns,
            after_ns=self._now_ns(),
            reads=reads,
            values=self._unsent_values,
            errors=self._unsent_errors,
        )

    def sent(self) -> None:
        """The last sample has arrived: from now on only what differs from it is told."""
        self._unsent_values, self._unsent_errors = {}, {}
        self._first = False

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _read_all(self, names: tuple[str, ...]) -> int:
        """Reads these files; READ_WITNESS if the witness was among them and could be read."""
        witness = self.port.witness
        reads = 0
        for name in names:
            if self._read(name) and name == witness:
                reads = READ_WITNESS
        return reads

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
        if not self._is_active() and self._state_was_active:
            self._closely_until_ns = now_ns + STATE_CLOSELY_NS
        self._state_was_active = self._is_active()
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
