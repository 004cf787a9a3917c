"""PortReader: sweeps the files of one port and says what it saw, and between when."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from flapd.core.fabric.catalogue import (
    ACTIVE_STATES,
    CARRIER,
    CARRIER_DOWNS,
    CARRIER_UPS,
    FLAGS,
    LINK_DOWN_EVENTS_PHY,
    LINK_DOWNED,
    PHYSICAL_STATE,
    RATE_FILE,
    STATE,
    Tier,
    stop_of,
)
from flapd.core.fabric.parse import value_names
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_RATE,
    READ_SLOW,
    READ_STATE,
    READ_STATISTICS,
    READ_WITNESS,
    Sample,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.file_reading import FileReading
from flapd.sources.glances import Glances
from flapd.sources.netlink_port import NetlinkPort
from flapd.sources.netlink_reading import NetlinkReading
from flapd.sources.plan import CARRIER_COUNTS, STATE_FILES, Plan
from flapd.sources.port_file import PortFile
from flapd.sources.sample_draft import SampleDraft, Sweep

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

_ACTIVE = ACTIVE_STATES[0]
_CARRIER_TRIES = 3


class PortReader:
    """Reads one port; used from one thread at a time."""

    def __init__(
        self,
        port: Port,
        plan: Plan,
        now_ns: Callable[[], int] = time.monotonic_ns,
        *,
        known_up: bool = True,
        netlink: NetlinkPort | None = None,
    ) -> None:
        """`known_up`: it was up at some time; one that never was is only listed until it is.

        `netlink` tells the state and the hardware counters for as long as it can, and the files
        are read for what it does not tell.
        """
        self.port = port
        self.was_up = known_up
        self.moves = 0
        """How often the link was seen to move, to be compared with what it was before."""
        self._plan = plan
        self._told_by_carrier = port.witness == CARRIER_DOWNS
        self._state_takes_lock = plan.state_tier == "rare"
        of_link = {*STATE_FILES, *plan.link_counts, CARRIER, FLAGS, RATE_FILE}
        told_of_link = (value for name in of_link for value in value_names(name))
        self._draft = SampleDraft(port.key, {*told_of_link, LINK_DOWN_EVENTS_PHY})
        self.values = self._draft.values
        self._reading = FileReading(self._draft)
        self._read = self._reading.read
        self.failures = self._reading.failures
        """Reads that failed so far, by reason."""
        self._files = {
            name: PortFile(
                name, path, LONGEST_LINK_PAUSE_NS if name in of_link else LONGEST_PAUSE_NS
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
        self._by_netlink = NetlinkReading(
            netlink,
            self._draft,
            states=[*self._state, *self._physical_state],
            slow=self._tiers["slow"],
            others=frozenset(self._files),
        )
        self._glances = Glances(
            [file for file in self._having(*plan.tiers["fast"]) if file.name in of_link],
            [file for file in self._having(*plan.tiers["fast"]) if file.name not in of_link],
            now_ns,
        )
        self._is_at_rest = False
        self._statistics_read = 0
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
        if self._carrier_tells_all:
            return "rare"
        return "fast" if self.port.witness is None and self.was_up else "slow"

    @property
    def _carrier_tells_all(self) -> bool:
        """The state would add nothing, and cost a lock."""
        return self._state_takes_lock and CARRIER in self.values

    @property
    def has_link_news(self) -> bool:
        """Something that was not told yet is of the link, or is an error."""
        return self._draft.has_link_news

    @property
    def counters_by_netlink(self) -> bool:
        """They are all told at once, for what one of them costs."""
        return bool(self._by_netlink.counters)

    @property
    def is_down(self) -> bool:
        """By what was read last."""
        return self._was_active is False or self.values.get(CARRIER) == 0

    @property
    def is_saturated(self) -> bool:
        """Its witness counts no further: what else counts downs is needed now."""
        return self.port.witness == LINK_DOWNED and self.values.get(LINK_DOWNED) == stop_of(
            LINK_DOWNED
        )

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

    def glance(self) -> bool:
        """A fast sweep over a link at rest, worked out later; False where it needs `sweep`."""
        return self._is_at_rest and self._glances.glance()

    def glanced(self) -> Iterator[Sweep]:
        """The sweeps that were glances since this was asked, each once its values are known."""
        for glance in self._glances.take():
            self._began_ns = self._reading.began_ns = glance.before_ns
            for file, raw in zip(self._glances.others, glance.raws, strict=True):
                if raw != file.raw:
                    self._reading.moved(file, raw)
            yield Sweep(glance.before_ns, glance.after_ns, READ_WITNESS)

    def sweep(self, tier: Tier, *, closely: bool = False) -> Sweep:
        """Reads one tier; `closely` has the state read with it. What was glanced comes before."""
        before_ns = self._began_ns = self._reading.began_ns = self._now_ns()
        was_active, ups = self._was_active, self._ups
        ups_before = ups.raw if ups is not None else None
        reads = self._read_for(tier, closely) | self._statistics_read
        self._statistics_read = 0
        if self._is_first:
            reads |= READ_FIRST | self._read_carrier()
        came_up = was_active is False and self._was_active
        if came_up or (ups is not None and _counted(ups_before, ups.raw)):
            reads |= self._read_rate()
        if not self.was_up:
            self.was_up = bool(self._was_active or self.values.get(CARRIER))
        if tier == "fast":
            self._is_at_rest = self._rests()
        return Sweep(before_ns, self._now_ns(), reads)

    def sample(self, sweep: Sweep) -> Sample:
        """What this sweep and those before it that could not be sent have to tell."""
        return self._draft.sample(sweep)

    def sent(self) -> None:
        """The last sample has arrived: from now on only what differs from it is told."""
        self._draft.sent()
        self._is_first = False

    def take_statistics(self, told: Mapping[str, int] | str) -> None:
        """Those of the netdev, for the next sweep; or why they cannot be read any more."""
        if isinstance(told, str):
            self._draft.lose_all("ethtool/", told)
        else:
            self._draft.know(told)
            self._statistics_read = READ_STATISTICS

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
        if closely or not self._carrier_tells_all or self._is_close:
            reads = self._read_state()
        if self._carrier and CARRIER not in self.values:
            reads |= self._read_carrier()
        self._read(self._by_netlink.files_left(self._began_ns))
        return reads | READ_SLOW

    def _sweep_rare(self) -> int:
        reads = self._read_state() if self.state_tier == "rare" else 0
        if not self._by_netlink.told_states:
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
            self._link_moved()
        return READ_WITNESS if witness.error is None else 0

    def _link_moved(self) -> None:
        self._is_at_rest = False
        self.moves += 1
        self._closely_until_ns = self._began_ns + STATE_CLOSELY_NS

    @property
    def _is_close(self) -> bool:
        """The link moved not long ago."""
        return self._began_ns < self._closely_until_ns

    def _read_state(self) -> int:
        self._state_at_ns = self._began_ns
        if self._state:
            self._read_states()
        state = self.values.get(STATE)
        if state is None:
            return 0
        is_active = state in ACTIVE_STATES
        if self._was_active is not False and not is_active:
            self._link_moved()
        self._was_active = is_active
        return READ_STATE

    def _read_states(self) -> None:
        """The physical state says no more than the state of a port that is plainly active."""
        if self._by_netlink.tells_states(self._began_ns):
            return
        before = self.values.get(STATE)
        self._read(self._state)
        state = self.values.get(STATE)
        if state != before or state != _ACTIVE:
            self._read(self._physical_state)

    def _rests(self) -> bool:
        """The next fast sweep reads no more than its tier, where nothing has happened."""
        if not self.was_up or self._is_first or self._is_close or self.is_saturated:
            return False
        if not self._told_by_carrier and (self.state_tier == "fast" or not self._was_active):
            return False
        return all(file.fd >= 0 and file.raw is not None for file in self._tiers["fast"])

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
