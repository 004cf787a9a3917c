"""An 8-bit witness at its stop, and the counter of 32 bits that goes on."""

from hypothesis import given
from hypothesis import strategies as st

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.core.fabric.view import PortView
from flapd.model.duration import Duration
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_FIRST,
    READ_STATE,
    READ_STATISTICS,
    READ_WITNESS,
    ClockPair,
    Observation,
    PortSeen,
    Sample,
)
from flapd.model.port import Port

MS = 1_000_000
LINK_DOWNED, PHY = "counters/link_downed", "ethtool/link_down_events_phy"
PORT = Port("a/1", "mlx5_0", 1, "InfiniBand", netdev="ib0", witnesses=(LINK_DOWNED,))
SETTINGS = FlapSettings(merge_within=Duration(500 * MS), boot_grace=Duration(0))
STOP = 255


class Agent:
    """A port that is read every 100 ms of its time, and its statistics when they are asked for."""

    def __init__(self, link_downed: int) -> None:
        self.now_ms = 0
        self.counted, self.phy, self.began_at = link_downed, 1_000, link_downed
        self.engine = Engine("node7", SETTINGS)
        self.told: dict[str, Outage] = {}
        self.known: dict[str, int] = {}
        self.takes(ClockPair(0, 10**18, "boot1"), PortSeen(PORT, 0))
        self.read(READ_FIRST)

    def takes(self, *observations: Observation) -> None:
        for observation in observations:
            for event in self.engine.step(observation):
                if isinstance(event, Outage):
                    self.told[event.id] = event

    def read(self, reads: int = 0, *, up: bool = True, error: str | None = None) -> None:
        self.now_ms += 100
        values = {LINK_DOWNED: min(STOP, self.counted), "state": 4 if up else 1}
        if reads & READ_STATISTICS:
            values[PHY] = self.phy
        before_ns = self.now_ms * MS
        failed = {} if error is None else {PHY: error}
        reads |= READ_WITNESS | READ_STATE
        if not reads & READ_FIRST:
            values = {name: at for name, at in values.items() if self.known.get(name) != at}
        self.known |= values
        self.takes(Sample(PORT.key, before_ns, before_ns + 2 * MS, reads, values, failed))

    def rest(self) -> None:
        """Long enough that both have counted all, and both are read."""
        for _ in range(40):
            self.read()
        self.read(READ_STATISTICS)

    def flaps(self, times: int = 1) -> None:
        """Too short for any state to show."""
        self.counted, self.phy = self.counted + times, self.phy + times

    @property
    def downs(self) -> int:
        for _ in range(15):
            self.read()
        return self.view.totals.downs["link"]

    @property
    def view(self) -> PortView:
        (view,) = self.engine.snapshot().ports
        return view

    @property
    def at_least(self) -> list[bool]:
        return [outage.count_at_least for outage in self.told.values()]


def test_downs_are_counted_on_past_the_stop_and_none_says_at_least() -> None:
    agent = Agent(253)
    agent.rest()
    agent.flaps(6)
    agent.read()
    agent.rest()
    agent.flaps()
    agent.rest()

    assert agent.downs == 7
    assert not any(agent.at_least)


def test_it_says_which_counter_counts_now_and_still_wants_the_state() -> None:
    agent = Agent(254)
    agent.rest()
    agent.flaps()
    agent.read()

    assert (agent.view.counter, agent.view.witness_status) == (PHY, "live")
    assert agent.view.witness_value == agent.phy
    assert agent.view.saturated == (LINK_DOWNED,)
    assert agent.view.wants_state


def test_until_it_was_read_before_the_stop_at_least_stays() -> None:
    agent = Agent(254)
    agent.flaps(3)
    agent.read()
    agent.rest()

    assert agent.downs == 1
    assert agent.at_least == [True]


def test_a_port_found_at_the_stop_counts_exactly_from_the_first_reading_at_rest() -> None:
    agent = Agent(STOP)
    assert agent.view.witness_status == "saturated"
    agent.rest()
    assert agent.view.counter == PHY
    agent.flaps(2)
    agent.rest()

    assert agent.downs == 2
    assert agent.at_least == [False]


def test_a_down_that_the_state_shows_is_paid_by_it_once() -> None:
    agent = Agent(STOP)
    agent.rest()
    agent.read(up=False)
    agent.flaps()
    agent.read(READ_STATISTICS, up=False)
    agent.read()
    agent.rest()

    (outage,) = agent.told.values()
    assert agent.downs == outage.count == 1
    assert (outage.seen, outage.count_at_least, outage.settled) == ("observed", False, True)


def test_a_counter_that_does_not_count_the_same_is_not_used() -> None:
    agent = Agent(250)
    agent.rest()
    agent.counted += 2
    agent.phy += 3
    agent.read()
    agent.rest()
    agent.flaps(5)
    agent.read()
    agent.rest()

    assert agent.view.counter == LINK_DOWNED
    assert agent.view.witness_status == "saturated"
    assert agent.at_least[-1]


def test_where_it_cannot_be_read_any_more_the_witness_is_at_its_stop_again() -> None:
    agent = Agent(STOP)
    agent.rest()
    agent.read(error="EIO")

    assert (agent.view.counter, agent.view.witness_status) == (LINK_DOWNED, "saturated")


def test_a_reset_of_the_witness_gives_the_count_back_to_it() -> None:
    agent = Agent(STOP)
    agent.rest()
    agent.flaps(2)
    agent.rest()
    agent.counted = 0
    agent.rest()
    assert agent.view.counter == LINK_DOWNED
    agent.flaps()
    agent.rest()

    assert agent.downs == 3
    assert agent.view.witness_value == 1


def test_both_are_known_after_a_restart_also_of_another_version() -> None:
    agent = Agent(STOP)
    agent.rest()
    agent.flaps(2)
    agent.rest()
    kept = agent.engine.checkpoint()

    agent.engine = Engine.of_recording("node7", kept)
    agent.takes(PortSeen(PORT, agent.now_ms * MS))
    agent.flaps()
    agent.rest()
    assert agent.downs == 3
    assert agent.view.counter == PHY

    agent.engine = Engine.with_totals_of("node7", SETTINGS, kept, 3_000 * MS)
    agent.takes(PortSeen(PORT, agent.now_ms * MS))
    agent.read()
    assert agent.view.counter == LINK_DOWNED
    assert agent.downs == 2


def test_what_was_counted_in_another_boot_does_not_go_on() -> None:
    agent = Agent(STOP)
    agent.rest()
    agent.takes(ClockPair(500 * MS, 10**18 + 10**12, "boot2"))
    agent.now_ms, agent.phy = 600, 0
    agent.read(READ_FIRST)
    agent.rest()
    agent.flaps(2)
    agent.rest()

    assert agent.downs == 2


@given(start=st.integers(240, 255), steps=st.lists(st.integers(0, 9), max_size=8))
def test_whatever_comes_once_at_rest_every_down_is_counted(start: int, steps: list[int]) -> None:
    agent = Agent(start)
    agent.rest()
    for step in steps:
        agent.flaps(step)
        agent.read(READ_STATISTICS if step % 2 else 0)
        agent.rest()

    assert agent.downs == sum(steps)
    assert not any(agent.at_least)
