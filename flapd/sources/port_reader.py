"""PortReader: sweeps the files of one port and says what it saw, and between when.

The raw bytes are compared before anything is parsed: most files have not moved.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from os import pread

import msgspec

from flapd.core.fabric.catalogue import (
    ACTIVE_STATES,
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    FLAGS,
    PHYSICAL_STATE,
    RATE_FILE,
    STATE,
    Tier,
)
from flapd.core.fabric.parse import UnreadableError
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_RATE,
    READ_STATE,
    READ_WITNESS,
    Sample,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.files import reason_of
from flapd.sources.plan import CARRIER_COUNTS, STATE_FILES, Plan
from flapd.sources.port_file import PortFile

STATE_CLOSELY_NS = 60 * SECOND_NS
"""After the link moved, its state is read on every sweep for this long,"""
STATE_LATER_NS = SECOND_NS
"""and then this often while it is still down."""
LISTED_EVERY_NS = SECOND_NS
"""A port that never was up is read on slow sweeps, and this often where those are rarer."""
LONGEST_PAUSE_NS = 60 * SECOND_NS
"""Between two reads of a file that fails;"""
LONGEST_LINK_PAUSE_NS = 10 * SECOND_NS
"""of one that tells of the link."""
REREGISTERED = "ENODEV"
"""What a descriptor says that was kept from before its device was registered anew."""

_ACTIVE = ACTIVE_STATES[0]
_CARRIER_TRIES = 3
_LONGEST_VALUE_BYTES = 128


class Sweep(msgspec.Struct, frozen=True):
    """One reading of one tier: everything in it was read between these moments."""

    before_ns: int
    after_ns: int
    reads: int


class PortReader:
    """Reads one port; used from one thread at a time."""

    def __init__(
        self,
        port: Port,
        plan: Plan,
        now_ns: Callable[[], int] = time.monotonic_ns,
        *,
        known_up: bool = True,
    ) -> None:
        """`known_up`: it was up at some time; one that never was is only listed until it is."""
        self.port = port
        self.values: dict[str, int] = {}
        """Present value of everything that can be read."""
        self.was_up = known_up
        self.failures: Counter[str] = Counter()
        """Reads that failed so far, by reason."""
        self.has_link_news = True
        """Something that was not told yet is of the link, or is an error."""
        self._plan = plan
        self._told_by_carrier = port.witness == CARRIER_DOWNS
        self._of_link = {*STATE_FILES, *plan.link_counts, CARRIER, FLAGS, RATE_FILE}
        self._files = {
            name: PortFile(
                name, path, LONGEST_LINK_PAUSE_NS if name in self._of_link else LONGEST_PAUSE_NS
            )
            for name, path in plan.paths.items()
        }
        self._tiers = {tier: self._having(*names) for tier, names in plan.tiers.items()}
        self._link_counts = self._having(*plan.link_counts)
        self._state, self._physical_state = self._having(STATE), self._having(PHYSICAL_STATE)
        self._rate, self._flags = self._having(RATE_FILE), self._having(FLAGS)
        self._carrier, self._carrier_counts = self._having(CARRIER), self._having(*CARRIER_COUNTS)
        self._witness = self._files.get(port.witness or "")
        self._ups = self._files.get(CARRIER_UPS)
        self._unsent_values: dict[str, int] = {}
        self._unsent_errors: dict[str, str] = {}
        self._unsent_reads = 0
        self._unsent_since_ns: int | None = None
        self._is_first = True
        self._began_ns = 0
        """When the present sweep began."""
        self._closely_until_ns = 0
        self._state_at_ns = 0
        self._listed_ns: int | None = None
        self._was_active: bool | None = None
        """By the last state that could be read."""
        self._now_ns = now_ns

    @property
    def state_tier(self) -> Tier:
        """On which the state is read while the link does not move."""
        if self._plan.state_tier == "rare":  # where the carrier tells all that it could
            return "rare" if CARRIER in self.values else "slow"
        return "fast" if self.port.witness is None and self.was_up else "slow"

    def files_at_rest(self, *, closely: bool) -> dict[Tier, tuple[str, ...]]:
        """What is read on each tier while the link does not move."""
        files = dict(self._plan.tiers)
        if not self.was_up:
            files = {"fast": (), "slow": self._plan.link_counts, "rare": ()}
        state_tier: Tier = "fast" if closely and self.was_up else self.state_tier
        if STATE in self._files:
            files[state_tier] = (STATE, *files[state_tier])
        return files

    def wants(self, tier: Tier) -> bool:
        """Whether there is anything to read for it now."""
        if self.was_up or tier != "fast" or self._listed_ns is None:
            return True
        return self._now_ns() - self._listed_ns >= LISTED_EVERY_NS

    def sweep(self, tier: Tier, *, closely: bool = False) -> Sweep:
        """Reads one tier; `closely` has the state read with it."""
        before_ns = self._began_ns = self._now_ns()
        was_active, ups = self._was_active, self._ups
        ups_before = ups.raw if ups is not None else None
        reads = self._read_for(tier, closely)
        if self._is_first:
            reads |= READ_FIRST | self._read_carrier()
        came_up = was_active is False and self._was_active
        if came_up or (ups is not None and _counted(ups_before, ups.raw)):
            reads |= self._read_rate()
        if not self.was_up:
            self.was_up = bool(self._was_active or self.values.get(CARRIER))
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
        self._is_first = self.has_link_news = False

    def close(self) -> None:
        for file in self._files.values():
            file.close()

    def _read_for(self, tier: Tier, closely: bool) -> int:
        if not self.was_up:
            return self._list(tier)
        if tier == "fast":
            return self._sweep_fast(closely)
        return self._sweep_slow(closely) if tier == "slow" else self._sweep_rare()

    def _sweep_fast(self, closely: bool) -> int:
        """The witness first: a state read after it can be newer than the count, never older."""
        reads = self._read_witness(self._tiers["fast"])
        if self._is_close:
            self._read(self._flags)
        if closely or self._wants_state():
            reads |= self._read_state()
        return reads

    def _sweep_slow(self, closely: bool) -> int:
        """The state first, so that many counters do not come between it and the witness."""
        if self._flags:
            self._read(self._flags)
        reads = 0
        if closely or self._is_close or self.state_tier != "rare":
            reads = self._read_state()
        if self._carrier and CARRIER not in self.values:
            reads |= self._read_carrier()
        self._read(self._tiers["slow"])
        return reads

    def _sweep_rare(self) -> int:
        reads = self._read_state() if self.state_tier == "rare" else 0
        self._read(self._physical_state)
        self._read(self._tiers["rare"])
        return reads | self._rate_was_read() | self._read_carrier()

    def _list(self, tier: Tier) -> int:
        """Reads nothing but whether it comes up."""
        self._listed_ns = self._began_ns
        before = [file.raw for file in self._link_counts]
        reads = self._read_witness(self._link_counts)
        if any(map(_counted, before, (file.raw for file in self._link_counts))):
            self.was_up = True
        if self._is_first or tier in {self.state_tier, "fast"}:
            reads |= self._read_state()
        return reads

    def _having(self, *names: str) -> list[PortFile]:
        return [self._files[name] for name in names if name in self._files]

    def _read_witness(self, files: Sequence[PortFile]) -> int:
        """Reads the witness among others."""
        witness = self._witness
        if witness is None:
            self._read(files)
            return 0
        before, is_new = witness.raw, witness.is_new
        self._read(files)
        if witness.raw != before and not is_new:
            self._closely_until_ns = self._began_ns + STATE_CLOSELY_NS
        return READ_WITNESS if witness.error is None else 0

    @property
    def _is_close(self) -> bool:
        """The link moved not long ago."""
        return self._began_ns < self._closely_until_ns

    def _read(self, files: Sequence[PortFile]) -> None:
        """Nearly all of what the sampler does is this loop: most files have not moved."""
        for file in files:
            try:
                raw = pread(file.fd, _LONGEST_VALUE_BYTES, 0)
            except OSError as error:
                self._not_read(file, error)
            else:
                if raw != file.raw:
                    self._moved(file, raw)

    def _not_read(self, file: PortFile, error: OSError) -> None:
        """It is not open, or fails."""
        if file.fd < 0:
            if file.must_wait(self._began_ns) or self._is_untold(file):
                return
            try:
                raw = file.read()
            except OSError as on_opening:
                error = on_opening
            else:
                self._moved(file, raw)
                return
        self._failed(file, reason_of(error), reason_of(error))

    def _is_untold(self, file: PortFile) -> bool:
        """A new registration is told before what is read after it."""
        return self._unsent_errors.get(file.name) == REREGISTERED

    def _moved(self, file: PortFile, raw: bytes) -> None:
        try:
            values = file.parse(raw)
        except UnreadableError as error:
            self._failed(file, str(error), "not understood")
            return
        file.gave(raw)
        if file.name in self._of_link:
            self.has_link_news = True
        self.values.update(values)
        self._unsent_values.update(values)
        for value_name in values:
            self._unsent_errors.pop(value_name, None)

    def _failed(self, file: PortFile, error: str, reason: str) -> None:
        self.failures[reason] += 1
        is_news = file.error != error
        self.has_link_news |= is_news
        file.failed(error, self._began_ns)
        for value_name in file.value_names if is_news else ():
            self.values.pop(value_name, None)
            self._unsent_values.pop(value_name, None)
            self._unsent_errors[value_name] = error

    def _read_state(self) -> int:
        """The physical state says no more than the state of a port that is plainly active."""
        self._state_at_ns = self._began_ns
        before = self.values.get(STATE)
        self._read(self._state)
        state = self.values.get(STATE)
        if state != before or state != _ACTIVE:
            self._read(self._physical_state)
        if state is None:
            return 0
        is_active = state in ACTIVE_STATES
        if self._was_active is not False and not is_active:
            self._closely_until_ns = self._began_ns + STATE_CLOSELY_NS
        self._was_active = is_active
        return READ_STATE

    def _read_rate(self) -> int:
        self._read(self._rate)
        return self._rate_was_read()

    def _rate_was_read(self) -> int:
        return READ_RATE if any(file.error is None for file in self._rate) else 0

    def _wants_state(self) -> bool:
        """Where the carrier counts tell everything, the state is no more than a label."""
        if self._told_by_carrier:
            return False
        if self._is_first or self._is_close or self.state_tier == "fast":
            return True
        return not self._was_active and self._began_ns - self._state_at_ns >= STATE_LATER_NS

    def _read_carrier(self) -> int:
        """The carrier with its counts, read again until none of them moved in between.

        Reading `carrier` takes the RTNL lock, unlike its counts: seldom, therefore.
        """
        files = [*self._carrier, *self._carrier_counts]
        for _ in range(_CARRIER_TRIES if self._carrier else 0):
            before = [file.raw for file in self._carrier_counts]
            self._read(files)
            if any(file.error is not None for file in files):
                return 0
            if before == [file.raw for file in self._carrier_counts]:
                return READ_CARRIER | READ_WITNESS
        return 0


def _counted(before: bytes | None, after: bytes | None) -> bool:
    """The counter moved between two readings of it."""
    return before is not None and after is not None and before != after
