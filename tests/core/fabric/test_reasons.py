"""What is said of an outage, before and after it is known."""

from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration
from flapd.model.event import Event, Outage, PortChange
from flapd.model.observation import (
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    KernelHint,
    KernelLine,
    KernelLineAbout,
    LinkReason,
    ModuleSeen,
    Observation,
    PortSeen,
    Sample,
)
from flapd.model.port import Port

MS = 1_000_000
LINK_DOWNED = "counters/link_downed"
PCI = "0000:3b:00.0"
ONE = Port("a/1", "mlx5_0", 1, "InfiniBand", pci=PCI, netdev="ib0", witnesses=(LINK_DOWNED,))
OTHER = Port("b/1", "mlx5_1", 1, "InfiniBand", pci="0000:5e:00.0", witnesses=(LINK_DOWNED,))
SETTINGS = FlapSettings(merge_within=Duration(700 * MS), boot_grace=Duration(0))
UP, DOWN = {"state": 4, "phys_state": 5}, {"state": 1, "phys_state": 2}


class Agent:
    """An engine with two ports that are up."""

    def __init__(self) -> None:
        self.engine = Engine("node7", SETTINGS)
        self.told: dict[str, Outage] = {}
        self.takes(ClockPair(0, 10**18, "boot1"), PortSeen(ONE, 0), PortSeen(OTHER, 0))
        for port in (ONE, OTHER):
            reads = READ_FIRST | READ_WITNESS | READ_STATE
            self.takes(Sample(port.key, 0, 2 * MS, reads, UP | {LINK_DOWNED: 5}))

    def takes(self, *observations: Observation) -> list[Event]:
        told = [event for one in observations for event in self.engine.step(one)]
        self.told |= {event.id: event for event in told if isinstance(event, Outage)}
        return told

    def flaps(self, at_ms: int, downs: int) -> None:
        self.takes(read(at_ms - 10, {}))
        self.takes(read(at_ms, DOWN | {LINK_DOWNED: downs}), read(at_ms + 100, UP))

    @property
    def outage(self) -> Outage:
        (outage,) = self.told.values()
        return outage


def read(at_ms: int, values: dict[str, int]) -> Sample:
    reads = READ_WITNESS | READ_STATE
    return Sample(ONE.key, at_ms * MS, (at_ms + 2) * MS, reads, values)


def line(
    at_ms: int,
    reason: str | None,
    about: KernelLineAbout = "module",
    pci: str | None = PCI,
    netdev: str | None = None,
    device: str | None = None,
) -> KernelHint:
    told = KernelLine(about, reason, pci, netdev, device)
    return KernelHint(told, at_ms * MS, (at_ms + 5) * MS)


def asked(at_ms: int, reason: str) -> LinkReason:
    return LinkReason(ONE.key, reason, at_ms * MS, (at_ms + 3) * MS, "ethtool")


def test_a_line_of_the_log_some_seconds_before_the_down_is_its_reason() -> None:
    agent = Agent()
    agent.takes(line(15_000, "Cable unplugged"))
    agent.flaps(20_000, 6)

    assert agent.outage.reason == "Cable unplugged"
    assert "kernel_log" in agent.outage.evidence


def test_a_line_that_comes_after_the_flap_is_over_and_counted_still_is() -> None:
    agent = Agent()
    agent.flaps(20_000, 6)
    agent.takes(read(22_000, {}), read(24_000, {}))
    before = agent.outage
    assert before.settled

    (revised,) = agent.takes(line(25_000, "High temperature on sensors", "temperature"))

    assert agent.outage.reason == "High temperature on sensors"
    assert agent.outage.revision == before.revision + 1
    assert revised == agent.outage
    assert (agent.outage.down, agent.outage.up) == (before.down, before.up)


def test_a_line_from_long_before_or_after_is_none_of_it() -> None:
    agent = Agent()
    agent.takes(line(5_000, "Cable unplugged"))
    agent.flaps(20_000, 6)
    agent.takes(read(22_000, {}), read(40_000, {}), line(40_000, "Cable error, Bus stuck"))

    assert agent.outage.reason is None


def test_what_is_said_creates_no_outage() -> None:
    agent = Agent()

    assert agent.takes(line(15_000, "Cable unplugged"), asked(15_000, "No cable")) == []
    assert agent.told == {}


def test_it_narrows_no_bound() -> None:
    agent = Agent()
    agent.takes(read(20_000, DOWN | {LINK_DOWNED: 6}))
    edge = agent.outage.down

    agent.takes(line(10_500, None, "link_down"), asked(20_001, "No cable"))

    assert agent.outage.down == edge
    assert agent.outage.up is None


def test_sources_are_told_together_each_text_once() -> None:
    agent = Agent()
    agent.takes(read(20_000, DOWN | {LINK_DOWNED: 6}), asked(20_010, "No cable"))
    agent.takes(asked(50_000, "No cable"), line(20_005, "Cable unplugged"))

    assert agent.outage.reason == "No cable; Cable unplugged"
    assert set(agent.outage.evidence) >= {"ethtool", "kernel_log"}


def test_what_is_said_of_a_port_that_is_down_holds_for_as_long_as_it_is_down() -> None:
    agent = Agent()
    agent.takes(read(20_000, DOWN | {LINK_DOWNED: 6}), read(90_000, {}))

    agent.takes(asked(100_000, "No cable"), line(100_000, "Fatal error 3 detected", "firmware"))
    agent.takes(read(110_000, UP), read(120_000, {}), asked(130_000, "Bad signal integrity"))

    assert agent.outage.reason == "No cable"


def test_an_answer_that_is_earlier_here_than_the_sample_of_the_down_is_kept_for_it() -> None:
    agent = Agent()
    agent.takes(asked(20_003, "No cable"), read(20_000, DOWN | {LINK_DOWNED: 6}))

    assert agent.outage.reason == "No cable"


def test_a_line_without_a_reason_is_evidence_all_the_same() -> None:
    agent = Agent()
    agent.takes(line(20_000, None, "link_down", netdev="ib0"))
    agent.flaps(20_000, 6)

    assert agent.outage.reason is None
    assert "kernel_log" in agent.outage.evidence


def test_a_line_is_of_the_netdev_or_device_that_it_names_and_of_no_other() -> None:
    agent = Agent()
    agent.takes(
        line(20_000, "about another netdev", netdev="eth9"),
        line(20_000, "about another device", device="mlx5_9"),
        line(20_000, "about another function", pci=OTHER.pci),
        line(20_000, "about no port", "link_up"),
        line(20_000, "about this device", pci=None, device="mlx5_0"),
    )
    agent.flaps(20_000, 6)

    assert agent.outage.reason == "about this device"


def test_each_of_two_flaps_has_the_reason_near_it() -> None:
    agent = Agent()
    agent.takes(line(20_000, "Cable unplugged"))
    agent.flaps(20_000, 6)
    agent.takes(read(23_000, {}))
    agent.takes(read(60_000, {}), line(60_000, "Cable error, Bus stuck"))
    agent.flaps(60_100, 7)

    first, second = agent.told.values()
    assert (first.reason, second.reason) == ("Cable unplugged", "Cable error, Bus stuck")


def test_reasons_without_end_are_bounded() -> None:
    agent = Agent()
    agent.takes(read(20_000, DOWN | {LINK_DOWNED: 6}))
    for number in range(1_000):
        agent.takes(line(20_000 + number, f"reason {number:04} " + "x" * 100))

    assert len(agent.outage.reason or "") <= 400
    record = agent.engine.port(ONE.key)
    assert record is not None
    assert len(record.book.reasons) <= 8


def test_what_was_said_survives_a_restart_and_is_of_no_other_boot() -> None:
    agent = Agent()
    agent.takes(line(15_000, "Cable unplugged"))
    agent.engine = Engine.of_recording("node7", agent.engine.checkpoint())
    agent.takes(PortSeen(ONE, 15_000 * MS), read(16_000, {}), PortSeen(OTHER, 15_000 * MS))
    agent.flaps(20_000, 6)
    assert agent.outage.reason == "Cable unplugged"

    agent.told.clear()
    agent.takes(ClockPair(1_000 * MS, 10**18 + 10**12, "boot2"))
    assert all(outage.reason is None for outage in agent.told.values())


def test_the_module_is_shown_and_that_it_is_another() -> None:
    agent = Agent()
    seen = ModuleSeen(ONE.key, "Mellanox", "MCP4Y10", "MT1", 30_000 * MS)

    told = agent.takes(seen, seen, ModuleSeen(ONE.key, "Mellanox", "MCP4Y10", None, 60_000 * MS))

    changes = [event for event in told if isinstance(event, PortChange)]
    assert [(event.change, event.note) for event in changes] == [
        ("module", "Mellanox MCP4Y10 MT1"),
        ("module", "Mellanox MCP4Y10 -"),
    ]
    shown = agent.engine.snapshot().ports[0].module
    assert shown is not None
    assert (shown.part, shown.serial) == ("MCP4Y10", None)
