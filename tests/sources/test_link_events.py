"""The netdevs behind the ports, followed by the agent."""

from pathlib import Path

from flapd.model.observation import LinkHint
from flapd.model.port import Port
from flapd.sources.link_events import LinkEvents
from tests.sources.namespace import in_namespace

PORT = Port("a/1", "mlx5_0", 1, "Ethernet", netdev="eth0")


def test_what_the_kernel_tells_unasked_has_the_ports_behind_it_read() -> None:
    told = in_namespace("events_of_ports")

    assert {tuple(keys) for keys in told["read"]} == {("a/1", "b/1")}
    assert told["netdevs"] == ["v0"]


def test_each_port_says_whether_its_netdev_is_heard_and_why_not() -> None:
    told = in_namespace("events_of_ports")

    assert told["before"] == "it has not begun yet"
    assert told["sources"] == {
        "of v0": "on",
        "bond of v0": "paths.sysfs does not say which netdev bond0 is",
        "of none": "no netdev is behind this port",
    }


def test_what_is_not_to_be_used_says_so_and_begins_nothing() -> None:
    heard: list[LinkHint] = []
    events = LinkEvents(Path("/sys"), "off by configuration", heard.append, lambda _keys: None)
    events.follow([PORT])
    events.start()
    events.look()
    events.stop()

    assert events.of(PORT) == "off by configuration"
    assert (events.overruns, heard) == (0, [])


def test_real_flaps_are_counted_once_and_each_interval_holds_its_edge() -> None:
    """Samples and messages come to the engine as they came here, which is not in their order."""
    run = in_namespace("engine_with_messages")
    told = sorted(run["told"], key=lambda flap: flap["down"])

    assert sum(flap["count"] for flap in told) == len(run["true"]) == 60
    assert all("rtnetlink" in flap["evidence"] for flap in told)
    remaining = iter(run["true"])
    for flap in told:
        holds = [next(remaining) for _ in range(flap["count"])]
        assert overlap(flap["down"], holds[0]["down"])
        assert overlap(flap["up"], holds[-1]["up"])


def overlap(found: list[int], true: list[int]) -> bool:
    """It happened at some moment of `true`: it can have been within `found`."""
    return found[0] <= true[1] and true[0] <= found[1]
