"""Whatever a link does, and whenever it is read: the balance, and the honesty of each interval."""

import msgspec
from hypothesis import assume, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from flapd.core.engine import Engine
from flapd.core.fabric.record import PortRecord
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    Observation,
    PortSeen,
    PortsPresent,
    Sample,
    Tick,
)
from flapd.model.port import Port

MS = 1_000_000
WITNESS = "counters/link_downed"
PORT = Port("guid-a/1", "mlx5_0", 1, "InfiniBand", witnesses=(WITNESS,))
SETTINGS = FlapSettings(merge_within=Duration(700 * MS), burst_max=Duration(5_000 * MS))
FAR = 10**12


class Down(msgspec.Struct):
    """The truth of one down of the link, in ms of the present boot."""

    began: int
    ended: int = FAR
    lag: int = 0
    """How long until the counter has it."""


class Link(msgspec.Struct):
    """An independent model of a port whose counter moves some time after the link does."""

    longest_lag: int
    start: int
    downs: list[Down] = []

    def counts(self, at: int) -> int:
        """It stops at 255."""
        counted = sum(1 for down in self.downs if down.began + down.lag <= at)
        return min(255, self.start + counted)

    def is_down(self, at: int) -> bool:
        return any(down.began <= at < down.ended for down in self.downs)


class AnySchedule(RuleBasedStateMachine):
    """Physical downs, readings early and late, restarts, reboots, removals."""

    @initialize(lag=st.sampled_from([0, 0, 40, 900]), start=st.integers(0, 3))
    def begin(self, lag: int, start: int) -> None:
        self.link = Link(lag, start, [])
        self.boot, self.now = 1, 1_000
        self.engine = Engine("node7", SETTINGS)
        self.told: dict[str, Outage] = {}
        self.boots: dict[str, Link] = {"boot1": self.link}
        self.held: list[Sample] = []
        self.first = True
        self.expected = 0
        """Rises of the counter between readings that continue each other."""
        self.never_counted = 0
        """Downs that the state showed, and then the counter went before it counted them."""
        self.last_value: int | None = None
        self.last_before = 0
        self.tell(ClockPair(self.now * MS, 10**18, "boot1"), PortSeen(PORT, self.now * MS))
        self.read(witness=True, state=True)

    @rule(gap=st.one_of(st.integers(1, 120), st.integers(1, 3_000)))
    def time_passes(self, gap: int) -> None:
        self.now += gap

    @rule(lasts=st.one_of(st.integers(1, 90), st.integers(1, 3_000)), lag=st.integers(0, 900))
    def the_link_goes_down_for(self, lasts: int, lag: int) -> None:
        assume(not self.link.is_down(self.now) and self.link.counts(FAR) < 255)
        self.now += 1
        lag = min(lag, self.link.longest_lag)
        self.link.downs.append(Down(self.now, self.now + lasts, lag))

    @rule(gap=st.integers(3, 100), state=st.booleans())
    def a_fast_sweep(self, gap: int, *, state: bool) -> None:
        self.now += gap
        self.read(witness=True, state=state)

    @rule(gap=st.integers(3, 100))
    def a_slow_sweep(self, gap: int) -> None:
        self.now += gap
        self.read(witness=False, state=True)

    @rule(gap=st.integers(3, 30))
    def a_sample_that_is_held_up(self, gap: int) -> None:
        self.now += gap
        self.held.append(self.sample(witness=True, state=True))

    @precondition(lambda self: self.held)
    @rule()
    def it_comes_late(self) -> None:
        late = self.held.pop(0)
        assume(late.before_ns < self.last_before * MS)
        self.tell(late)

    @rule()
    def a_tick(self) -> None:
        self.tell(Tick(self.now * MS))

    @rule()
    def the_agent_starts_again(self) -> None:
        self.engine = Engine.of_recording("node7", self.engine.checkpoint())
        self.tell(PortSeen(PORT, self.now * MS))

    @rule()
    def the_sampler_starts_again(self) -> None:
        self.first = True

    @rule()
    def the_device_goes_and_comes_back(self) -> None:
        self.now += 5
        self.never_counted += len(self.record.book.witness.debts)
        self.tell(PortsPresent((), (), self.now * MS), PortSeen(PORT, (self.now + 1) * MS))
        self.now += 2
        self.held, self.last_value, self.first = [], None, True

    @rule(slept=st.integers(0, 10_000))
    def the_machine_boots(self, slept: int) -> None:
        self.boot += 1
        self.never_counted += len(self.record.book.witness.debts)
        name = f"boot{self.boot}"
        wall_ns = 10**18 + (self.now + slept) * MS
        self.now, self.last_before = 500, 0
        self.link = self.boots[name] = Link(self.link.longest_lag, 0, [])
        self.held, self.last_value, self.first = [], None, True
        self.tell(ClockPair(self.now * MS, wall_ns, name), PortSeen(PORT, self.now * MS))

    def sample(self, *, witness: bool, state: bool) -> Sample:
        """Read at one moment, in a sweep of 2 ms."""
        values: dict[str, int] = {}
        reads = READ_WITNESS * witness | READ_STATE * state
        if witness:
            values[WITNESS] = self.link.counts(self.now)
        if state:
            is_down = self.link.is_down(self.now)
            values |= {"state": 1, "phys_state": 2} if is_down else {"state": 4, "phys_state": 5}
        sample = Sample(PORT.key, (self.now - 1) * MS, (self.now + 1) * MS, reads, values)
        self.now += 1
        return sample

    def read(self, *, witness: bool, state: bool) -> None:
        first, self.first = self.first, False
        sample = self.sample(witness=witness or first, state=state or first)
        if first:
            sample = msgspec.structs.replace(sample, reads=sample.reads | READ_FIRST)
        self.last_before = sample.before_ns // MS
        value = sample.values.get(WITNESS)
        if value is not None:
            self.expected += value - self.last_value if self.last_value is not None else 0
            self.last_value = value
        self.tell(sample)

    def tell(self, *observations: Observation) -> None:
        for observation in observations:
            for event in self.engine.step(observation):
                if isinstance(event, Outage):
                    known = self.told.get(event.id)
                    assert event.revision == (known.revision if known is not None else 0) + 1
                    self.told[event.id] = event

    @property
    def record(self) -> PortRecord:
        record = self.engine.port(PORT.key)
        assert record is not None
        return record

    @invariant()
    def what_the_counter_counted_is_counted_once(self) -> None:
        """A debt is a down the counter has not come to yet."""
        if not hasattr(self, "engine"):
            return
        book = self.record.book
        tally = book.tally
        counted = sum(tally.totals.downs.values()) + sum(entry.downs for entry in tally.uncounted)
        ahead = len(book.witness.written_off) + book.witness.counted_unread
        assert self.expected <= counted <= self.expected + ahead + self.never_counted

    @invariant()
    def every_interval_holds_its_edges(self) -> None:
        for outage in self.told.values() if hasattr(self, "engine") else ():
            if outage.cause == "link":
                self.check(outage, self.boots[outage.boot])

    def check(self, outage: Outage, link: Link) -> None:
        """As many downs as it counts began in it, the first and the last edge inside."""
        end_ns = outage.up.latest_ns if outage.up is not None else FAR * MS
        inside = [
            down for down in link.downs if outage.down.earliest_ns <= down.began * MS <= end_ns
        ]
        assert len(inside) >= outage.count
        assert any(down.began * MS <= outage.down.latest_ns for down in inside)
        if outage.up is not None:
            assert any(
                outage.up.earliest_ns <= down.ended * MS <= outage.up.latest_ns for down in inside
            )

    def check_shortest(self, outage: Outage, link: Link) -> None:
        """Once everything is counted: until then a down may turn out to have been two."""
        assert outage.up is not None
        assert outage.down_ns_min is not None
        end_ns = outage.up.latest_ns
        true_ns = [
            min(down.ended * MS, end_ns) - down.began * MS
            for down in link.downs
            if outage.down.earliest_ns <= down.began * MS <= end_ns
        ]
        assert outage.down_ns_min <= sum(true_ns)

    def teardown(self) -> None:
        if not hasattr(self, "engine"):
            return
        self.now = max([self.now, *(down.ended for down in self.link.downs)]) + 1_000
        for _ in range(40):
            self.now += 100
            self.read(witness=True, state=True)
        book = self.record.book
        assert book.episode is None
        assert not book.outages
        assert not book.tally.uncounted
        self.what_the_counter_counted_is_counted_once()
        self.every_interval_holds_its_edges()
        for outage in self.told.values():
            if outage.cause == "link" and outage.status == "closed":
                self.check_shortest(outage, self.boots[outage.boot])


AnySchedule.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnySchedule = AnySchedule.TestCase
