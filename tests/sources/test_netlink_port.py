import struct
from itertools import pairwise

from flapd.sources.netlink_port import FIRST_PAUSE_NS, LONGEST_PAUSE_NS, NetlinkPort
from flapd.sources.rdma_netlink import GET, PORT_GET, STAT_GET, RdmaNetlink
from tests.sources.netlink_bytes import RecordedKernel, captured

GUID = "5054:00ff:fe00:0001"


class Node:
    """One port of a kernel whose answers were recorded, and a clock."""

    def __init__(self, device: str = "rxe0", guid: str | None = GUID) -> None:
        self.now_ns = 0
        self.kernel = RecordedKernel(
            {
                (GET, True): captured("devices"),
                (PORT_GET, False): captured("port"),
                (STAT_GET, False): captured("counters"),
            }
        )
        self.port = NetlinkPort(
            RdmaNetlink(self.kernel), device, guid, 1, now_ns=lambda: self.now_ns
        )

    def kinds_asked(self) -> list[int]:
        kinds = [kind for kind, _ in self.kernel.asked]
        self.kernel.asked.clear()
        return kinds


def numbered(datagrams: list[bytes], index: int) -> list[bytes]:
    """The same devices, the first of them registered anew under another number."""
    old, new = (struct.pack("=HHI", 8, 1, number) for number in (0, index))
    return [datagram.replace(old, new) for datagram in datagrams]


def test_a_port_is_read_with_one_question_for_its_states_and_one_for_all_counters() -> None:
    node = Node()

    assert node.port.state() == {"state": 4, "phys_state": 5}
    assert node.kinds_asked() == [GET, PORT_GET]
    counters = node.port.hardware_counters()
    assert counters is not None
    assert counters["hw_counters/completer_retry_err"] == 0
    assert node.kinds_asked() == [STAT_GET]
    assert node.port.refused == {}


def test_what_is_refused_is_left_to_sysfs_for_a_while_and_the_rest_goes_on() -> None:
    node = Node()
    node.kernel.answers[STAT_GET, False] = captured("refused")

    assert node.port.hardware_counters() is None
    assert node.port.refused == {"STAT_GET": "EINVAL"}
    assert node.port.state() == {"state": 4, "phys_state": 5}
    node.kinds_asked()
    node.now_ns = FIRST_PAUSE_NS - 1
    assert node.port.hardware_counters() is None
    assert node.kinds_asked() == []

    node.kernel.answers[STAT_GET, False] = captured("counters")
    node.now_ns = FIRST_PAUSE_NS
    assert node.port.hardware_counters() is not None
    assert node.port.refused == {}


def test_what_is_refused_again_and_again_is_asked_for_once_a_minute() -> None:
    node = Node()
    node.kernel.answers[STAT_GET, False] = captured("refused")
    asked_ns = []
    while node.now_ns < 10 * LONGEST_PAUSE_NS:
        node.port.hardware_counters()
        if node.kinds_asked():
            asked_ns.append(node.now_ns)
        node.now_ns += FIRST_PAUSE_NS

    pauses_ns = [later - earlier for earlier, later in pairwise(asked_ns)]
    assert pauses_ns[:3] == [FIRST_PAUSE_NS, 2 * FIRST_PAUSE_NS, 4 * FIRST_PAUSE_NS]
    assert set(pauses_ns[6:]) == {LONGEST_PAUSE_NS}


def test_a_device_of_the_same_name_that_is_another_is_never_asked() -> None:
    node = Node(guid="0000:1111:2222:3333")

    assert node.port.state() is None
    assert node.port.refused == {"PORT_GET": "ENODEV"}
    assert node.kinds_asked() == [GET]


def test_an_answer_of_another_device_is_not_believed() -> None:
    node = Node(device="rxe1", guid=None)
    node.port._index = 0  # as if the kernel had given its number to another

    assert node.port.state() is None
    assert node.port.refused == {"PORT_GET": "ENODEV"}


def test_a_device_that_was_registered_anew_is_found_again_at_once() -> None:
    node = Node()
    node.port.state()
    assert node.port.registered == 0

    node.kernel.answers[GET, True] = numbered(captured("devices"), 7)
    node.kernel.refuses = PORT_GET, struct.pack("=HHI", 8, 1, 0)

    assert node.port.state() == {"state": 4, "phys_state": 5}
    assert node.port.refused == {}
    assert node.port.registered == 7


def test_a_port_that_fails_is_not_asked_twice_in_a_row() -> None:
    """Each question can hang for a minute in a driver whose firmware is dead."""
    node = Node()
    node.port.state()
    node.kinds_asked()
    node.kernel.answers[PORT_GET, False] = captured("refused")

    assert node.port.state() is None
    assert node.kinds_asked() == [PORT_GET, GET]
