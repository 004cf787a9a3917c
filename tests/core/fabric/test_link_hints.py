"""Messages of the kernel between, before and after the samples of one Ethernet port."""

from collections.abc import Sequence

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration
from flapd.model.event import Outage
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    LinkHint,
    Observation,
    PortSeen,
    Sample,
)
from flapd.model.port import Port

MS = 1_000_000
DOWNS, UPS, CARRIER, FLAGS = (
    "net/carrier_down_count",
    "net/carrier_up_count",
    "net/carrier",
    "net/flags",
)
KEY = "guid-b/1"
ROCE = Port(KEY, "mlx5_1", 1, "Ethernet", netdev="eth2", witnesses=(DOWNS,))
LINK_DOWNED = "counters/link_downed"
IB = Port(KEY, "mlx5_1", 1, "InfiniBand", netdev="eth2", witnesses=(LINK_DOWNED,))
SETTINGS = FlapSettings(merge_within=Duration(700 * MS), boot_grace=Duration(0))


class Agent:
    """An engine that has read this port once, and knows which netdev it reads."""

    def __init__(self, port: Port = ROCE, downs: int = 5, ups: int = 6) -> None:
        self.engine = Engine("node7", SETTINGS)
        self.told: dict[str, Outage] = {}
        self.takes(ClockPair(0, 10**18, "boot1"), PortSeen(port, 0))
        first = READ_FIRST | READ_WITNESS | READ_STATE | READ_CARRIER
        values = {DOWNS: downs, UPS: ups, CARRIER: 1, FLAGS: 0x1003, "state": 4, LINK_DOWNED: 5}
        self.takes(Sample(KEY, 0, 2 * MS, first, values), hint(10, downs, ups, asked_ms=9))

    def takes(self, *observations: Observation) -> list[Outage]:
        """Also the outages of which they made anything known, as they stand now."""
        told = [
            event
            for observation in observations
            for event in self.engine.step(observation)
            if isinstance(event, Outage)
        ]
        self.told |= {outage.id: outage for outage in told}
        return told

    @property
    def outage(self) -> Outage:
        (outage,) = self.told.values()
        return outage


def hint(
    received_ms: int,
    downs: int,
    ups: int,
    *,
    asked_ms: int | None = None,
    index: int = 7,
    flags: int = 0x1003,
    present: bool = True,
) -> LinkHint:
    asked_ns = None if asked_ms is None else asked_ms * MS
    return LinkHint(
        "eth2", index, present, downs, ups, ups > downs, "UP", flags, asked_ns, received_ms * MS
    )


def read(at_ms: int, downs: int | None = None, ups: int | None = None, **more: int) -> Sample:
    """A fast sweep that took 2 ms; what did not move is left out."""
    values = {name: value for name, value in ((DOWNS, downs), (UPS, ups)) if value is not None}
    return Sample(KEY, at_ms * MS, (at_ms + 2) * MS, READ_WITNESS, values | more)


def in_ms(outage: Outage) -> Sequence[tuple[int, int] | None]:
    edges = (outage.down, outage.up)
    return [
        None if edge is None else (edge.earliest_ns // MS, edge.latest_ns // MS) for edge in edges
    ]


def test_a_message_opens_an_outage_before_any_sample_does_and_another_closes_it() -> None:
    agent = Agent()
    agent.takes(read(100))

    (opened,) = agent.takes(hint(130, 6, 6))
    (closed,) = agent.takes(hint(150, 6, 7))

    assert (opened.status, opened.seen, opened.evidence) == (
        "open",
        "observed",
        ("witness", "rtnetlink"),
    )
    assert in_ms(opened) == [(100, 130), None]
    assert closed.status == "closed"
    assert in_ms(closed) == [(100, 130), (100, 150)]


def test_it_is_counted_once_when_the_samples_come_to_it() -> None:
    agent = Agent()
    agent.takes(read(100), hint(130, 6, 6), hint(150, 6, 7), read(200, 6, 7), read(2000))

    assert agent.outage.count == 1
    assert agent.outage.settled
    assert agent.engine.snapshot().ports[0].totals.downs["link"] == 1


def test_what_a_sample_overtook_is_not_counted_again_by_messages_that_come_late() -> None:
    """The sample was read before any of them was received, and has what all of them tell."""
    agent = Agent()
    agent.takes(read(100), hint(400, 6, 6), read(300, 7, 7))
    agent.takes(hint(405, 6, 7), hint(410, 7, 7), hint(420, 7, 8), read(500, 7, 8), read(2500))

    assert sum(outage.count for outage in agent.told.values()) == 2
    assert agent.engine.snapshot().ports[0].totals.downs["link"] == 2


def test_a_flap_that_the_kernel_merged_into_one_message_is_counted() -> None:
    agent = Agent()

    (merged,) = agent.takes(read(100), hint(1013, 9, 10))

    assert (merged.count, merged.seen, merged.status) == (4, "unseen", "closed")


def test_only_an_answer_says_when_the_link_was_still_up() -> None:
    agent = Agent()
    agent.takes(read(100), hint(151, 5, 6, asked_ms=150), hint(160, 6, 6))

    assert in_ms(agent.outage) == [(150, 160), None]

    unasked = Agent()
    unasked.takes(read(100), hint(151, 5, 6), hint(160, 6, 6))
    assert in_ms(unasked.outage) == [(100, 160), None]


def test_a_late_answer_says_so_after_all() -> None:
    agent = Agent()
    agent.takes(read(100), read(200, 6), hint(151, 5, 6, asked_ms=150))

    assert in_ms(agent.outage) == [(150, 202), None]
    assert agent.outage.evidence == ("witness", "rtnetlink")


def test_late_messages_narrow_how_late_each_edge_was() -> None:
    agent = Agent()
    agent.takes(read(100), read(200, 6), read(300, ups=7))
    assert in_ms(agent.outage) == [(100, 202), (200, 302)]

    agent.takes(hint(230, 6, 7), hint(130, 6, 6))

    assert in_ms(agent.outage) == [(100, 130), (200, 230)]
    assert agent.outage.count == 1


def test_messages_in_the_wrong_order_and_twice_tell_nothing_new() -> None:
    agent = Agent()
    messages = (hint(130, 6, 6), hint(150, 6, 7))
    agent.takes(read(100), *reversed(messages), read(200, 6, 7))

    assert (agent.outage.count, agent.outage.status) == (1, "closed")
    assert in_ms(agent.outage) == [(100, 130), (100, 150)]
    assert agent.takes(*messages) == []


def test_a_sample_that_a_message_overtook_is_no_reset_and_says_what_had_not_happened_yet() -> None:
    agent = Agent()
    agent.takes(read(100), hint(150, 6, 6), read(140))

    assert in_ms(agent.outage) == [(140, 150), None]
    agent.takes(read(200, 6), read(300, ups=7))
    assert in_ms(agent.outage) == [(140, 150), (200, 302)]
    assert agent.engine.snapshot().ports[0].witness_resets == 0


def test_what_else_such_a_sample_says_is_not_lost() -> None:
    agent = Agent()
    agent.takes(read(100), hint(150, 6, 6), read(140, symbol=7))

    assert agent.engine.snapshot().ports[0].values["symbol"] == 7


def test_files_that_say_less_than_a_message_before_them_count_anew() -> None:
    agent = Agent()
    agent.takes(read(100), hint(150, 6, 6), hint(151, 6, 7))
    agent.takes(Sample(KEY, 900 * MS, 902 * MS, READ_STATE, {}))

    agent.takes(read(1000))

    assert agent.engine.snapshot().ports[0].witness_resets == 1


def test_flags_and_operstate_alone_tell_nothing() -> None:
    agent = Agent()

    assert agent.takes(read(100), hint(150, 5, 6, flags=0)) == []


def test_an_interface_switched_off_is_told_as_that_at_once() -> None:
    agent = Agent()

    (outage,) = agent.takes(read(100), hint(150, 6, 6, flags=0x1002))

    assert outage.cause == "admin"


def test_counts_of_another_netdev_do_not_continue_these() -> None:
    agent = Agent()

    assert agent.takes(read(100), hint(150, 90, 90, index=8)) == []
    assert agent.takes(hint(160, 6, 6, present=False)) == []
    assert agent.takes(hint(170, 7, 7)) == []


def test_before_it_is_known_which_netdev_is_read_messages_tell_nothing() -> None:
    agent = Agent()
    agent.takes(hint(20, 5, 6, present=False))

    assert agent.takes(read(100), hint(150, 6, 6)) == []
    agent.takes(read(200, 6), hint(251, 6, 6, asked_ms=250), hint(270, 6, 7))
    assert in_ms(agent.outage) == [(100, 202), (250, 270)]


def test_after_its_counts_began_anew_messages_of_the_old_netdev_tell_nothing() -> None:
    agent = Agent()
    agent.takes(read(100), read(200, 0, 1))

    assert agent.takes(hint(150, 6, 6), hint(210, 6, 7)) == []


def test_the_netdev_of_an_infiniband_port_says_nothing_of_its_link() -> None:
    """Its carrier waits for the subnet manager."""
    agent = Agent(IB)

    assert agent.takes(read(100), hint(150, 6, 6), hint(160, 6, 7)) == []


def test_it_goes_on_after_a_restart() -> None:
    agent = Agent()
    agent.takes(read(100), hint(150, 6, 6))
    agent.engine = Engine.of_recording("node7", agent.engine.checkpoint())

    agent.takes(read(140), hint(170, 6, 7), read(300, 6, 7))

    assert in_ms(agent.outage) == [(140, 150), (140, 170)]


def test_counts_that_wrap_go_on() -> None:
    agent = Agent(downs=2**32 - 1, ups=0)

    (opened,) = agent.takes(read(50), hint(90, 0, 0))
    agent.takes(hint(95, 0, 1), read(100, 0, 1), read(2000))

    assert (opened.status, opened.count) == ("open", 1)
    assert (agent.outage.status, agent.outage.count, agent.outage.settled) == ("closed", 1, True)
