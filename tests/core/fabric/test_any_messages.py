"""Whatever the kernel tells of a netdev, late, doubled, merged, in any order: it balances."""

import msgspec
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from flapd.core.engine import Engine
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    LinkHint,
    PortSeen,
    PortsPresent,
    Sample,
)
from flapd.model.port import Port
from tests.core.fabric.test_any_schedule import MS, SETTINGS, AnySchedule, Link

DOWNS, UPS = "net/carrier_down_count", "net/carrier_up_count"
ROCE = Port("guid-a/1", "mlx5_0", 1, "Ethernet", netdev="eth0", witnesses=(DOWNS,))
IFF_UP = 1


class Netdev(Link):
    """It counts what its link does from its making on, and says the same in files and messages."""

    index: int = 7
    made_after: int = 0
    """Downs of this boot that were before it."""

    def counts(self, at: int) -> int:
        return self.start + sum(1 for down in self.downs[self.made_after :] if down.began <= at)

    def ups(self, at: int) -> int:
        ended = sum(1 for down in self.downs[self.made_after :] if down.ended <= at)
        return self.start + 1 + ended


class Message(msgspec.Struct):
    hint: LinkHint
    netdev: Netdev


class AnyMessages(AnySchedule):
    """The port of an Ethernet netdev, with messages between and before its samples."""

    link: Netdev

    @initialize(start=st.integers(0, 3))
    def begin(self, start: int) -> None:
        self.boot, self.now = 0, 1_000
        self.told: dict[str, Outage] = {}
        self.boots = {}
        self.expected = self.never_counted = 0
        self.engine = Engine("node7", SETTINGS)
        self.boot_with(Netdev(0, start, []), 10**18)

    def boot_with(self, link: Netdev, wall_ns: int) -> None:
        self.boot += 1
        self.boots[f"boot{self.boot}"] = self.link = link
        self.begin_anew()
        self.last_before = 0
        self.tell(
            ClockPair(self.now * MS, wall_ns, f"boot{self.boot}"), PortSeen(ROCE, self.now * MS)
        )
        self.read(witness=True, state=True)
        self.we_ask()

    def begin_anew(self) -> None:
        """Nothing that is on its way arrives, and no count goes on."""
        self.messages: list[Message] = []
        self.held: list[Sample] = []
        self.on_its_way: list[Sample] = []
        self.told_values: dict[str, int] = {}
        self.first = True
        self.lose_count()

    def lose_count(self) -> None:
        """What messages alone have told stays counted."""
        self.last_value: int | None = None
        self.heard = 0
        if self.boot > 1 or self.told:
            self.never_counted = self.counted - self.expected

    @rule(gap=st.integers(1, 40), takes=st.integers(0, 60), asked=st.booleans())
    def the_kernel_tells(self, gap: int, takes: int, *, asked: bool) -> None:
        """How it is now; others may be told before this one is received."""
        self.now += gap
        hint = LinkHint(
            "eth0",
            self.link.index,
            present=True,
            carrier_downs=self.link.counts(self.now),
            carrier_ups=self.link.ups(self.now),
            carrier=not self.link.is_down(self.now),
            operstate="up",
            flags=IFF_UP,
            asked_ns=(self.now - 1) * MS if asked else None,
            monotonic_ns=(self.now + takes) * MS,
        )
        self.messages.append(Message(hint, self.link))

    @rule()
    def we_ask(self) -> None:
        """And have the answer at once: so it is learnt which netdev is read."""
        self.now += 2
        self.the_kernel_tells(gap=1, takes=0, asked=True)
        self.receive(self.messages.pop())

    @rule(lasts=st.integers(1, 90), delay=st.integers(0, 50), samples=st.booleans())
    def the_link_goes_down_and_both_edges_are_told(
        self, lasts: int, delay: int, *, samples: bool
    ) -> None:
        """While samples come or do not."""
        self.the_link_goes_down_for(lasts=lasts, lag=0)
        for gap in (0, lasts):
            self.now += gap
            self.the_kernel_tells(gap=1, takes=delay, asked=False)
            if samples:
                self.a_sweep_that_is_on_its_way(gap=3)

    @rule(lasts=st.integers(1, 5), gap=st.integers(1, 5))
    def a_sample_that_was_read_before_a_message_came_knows_more(self, lasts: int, gap: int) -> None:
        """The messages after that one tell nothing new then."""
        for _ in range(2):
            self.the_link_goes_down_and_both_edges_are_told(lasts=lasts, delay=60, samples=False)
            self.now += gap
        self.a_sweep_that_is_on_its_way(gap=3)
        for _ in range(2):
            message = self.messages.pop(-4 if self.on_its_way else -3)
            self.now = max(self.now, message.hint.monotonic_ns // MS)
            self.receive(message)
            self.what_is_on_its_way_arrives()

    @precondition(lambda self: self.messages)
    @rule(which=st.integers(0, 5), again=st.booleans())
    def a_message_comes(self, which: int, *, again: bool) -> None:
        message = self.messages[which % len(self.messages)]
        self.now = max(self.now, message.hint.monotonic_ns // MS)
        if not again:
            self.messages.remove(message)
        self.receive(message)

    def receive(self, message: Message) -> None:
        if message.netdev is self.link:
            self.heard = max(self.heard, message.hint.carrier_downs or 0)
        self.tell(message.hint)

    @rule(gap=st.integers(3, 60))
    def a_sweep_that_is_on_its_way(self, gap: int) -> None:
        self.now += gap
        self.on_its_way.append(self.sample(witness=True, state=False))

    @rule()
    def what_is_on_its_way_arrives(self) -> None:
        while self.on_its_way:
            self.arrive(self.on_its_way.pop(0))

    @precondition(lambda self: self.link.counts(self.now) > 0 and not self.link.is_down(self.now))
    @rule()
    def the_netdev_is_made_anew(self) -> None:
        """Its counts were read not long before, and are lower now."""
        self.read(witness=True, state=False)
        self.now += 5
        old = self.link
        self.link = Netdev(0, 0, old.downs, old.index + 1, len(old.downs))
        self.read(witness=True, state=False)

    @rule()
    def the_device_goes_and_comes_back(self) -> None:
        self.now += 5
        self.tell(PortsPresent((), (), self.now * MS), PortSeen(ROCE, (self.now + 1) * MS))
        self.now += 2
        self.begin_anew()

    @rule(slept=st.integers(0, 10_000))
    def the_machine_boots(self, slept: int) -> None:
        wall_ns = 10**18 + (self.now + slept) * MS
        self.now = 500
        self.boot_with(Netdev(0, 0, []), wall_ns)

    @rule()
    def the_agent_starts_again(self) -> None:
        self.engine = Engine.of_recording("node7", self.engine.checkpoint())
        self.tell(PortSeen(ROCE, self.now * MS))

    def sample(self, *, witness: bool, state: bool) -> Sample:
        values: dict[str, int] = {}
        if witness:
            values = {DOWNS: self.link.counts(self.now), UPS: self.link.ups(self.now)}
        if state:
            values["state"] = 1 if self.link.is_down(self.now) else 4
        reads = READ_WITNESS * witness | READ_STATE * state
        sample = Sample(ROCE.key, (self.now - 1) * MS, (self.now + 1) * MS, reads, values)
        self.now += 1
        return sample

    def read(self, *, witness: bool, state: bool) -> None:
        self.what_is_on_its_way_arrives()
        first, self.first = self.first, False
        sample = self.sample(witness=witness or first, state=state or first)
        if first:
            is_up = not self.link.is_down(self.now - 1)
            reads = sample.reads | READ_FIRST | READ_CARRIER
            values = sample.values | {"net/carrier": int(is_up)}
            sample = msgspec.structs.replace(sample, reads=reads, values=values)
            self.told_values = {}
        self.arrive(sample)

    def arrive(self, sample: Sample) -> None:
        """It says only what differs from the last."""
        self.last_before = sample.before_ns // MS
        value = sample.values.get(DOWNS)
        if value is not None:
            if self.last_value is not None and value < self.last_value:
                self.lose_count()
            self.expected += value - self.last_value if self.last_value is not None else 0
            self.last_value = value
        news = {name: at for name, at in sample.values.items() if self.told_values.get(name) != at}
        self.told_values |= sample.values
        self.tell(msgspec.structs.replace(sample, values=news))

    @property
    def counted(self) -> int:
        tally = self.record.book.tally
        return sum(tally.totals.downs.values()) + sum(entry.downs for entry in tally.uncounted)

    @invariant()
    def what_the_counter_counted_is_counted_once(self) -> None:
        """A message may have told what no sample has yet."""
        if not hasattr(self, "engine") or not self.boots:
            return
        ahead = max(0, self.heard - self.last_value) if self.last_value is not None else 0
        expected = self.expected + self.never_counted
        assert expected <= self.counted <= expected + ahead

    def check(self, outage: Outage, link: Link) -> None:
        super().check(outage, link)
        if outage.count == 1:
            assert any(
                outage.down.earliest_ns <= down.began * MS <= outage.down.latest_ns
                and (outage.up is None or down.ended * MS <= outage.up.latest_ns)
                for down in link.downs
            )

    def teardown(self) -> None:
        for message in self.messages if hasattr(self, "messages") else ():
            self.tell(message.hint)
        super().teardown()


AnyMessages.TestCase.settings = settings(max_examples=150, stateful_step_count=40, deadline=None)
TestAnyMessages = AnyMessages.TestCase
