import struct
from errno import EINVAL, ENODEV, EPROTONOSUPPORT

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.netlink_codec import MalformedError, attributes
from flapd.sources.rdma_netlink import (
    GET,
    PORT_GET,
    STAT_GET,
    SYS_GET,
    Attribute,
    RdmaDevice,
    RdmaNetlink,
    RdmaPort,
    parse_counters,
    parse_port,
)
from tests.sources.netlink_bytes import (
    RecordedKernel,
    attributes_of,
    captured,
    captured_payload,
)

RXE0 = RdmaPort("rxe0", 1, state=4, physical_state=5, netdev="eth0", netdev_index=2)
GUID = "5054:00ff:fe00:0001"


def recorded() -> tuple[RdmaNetlink, RecordedKernel]:
    kernel = RecordedKernel(
        {
            (GET, True): captured("devices"),
            (PORT_GET, True): captured("ports"),
            (PORT_GET, False): captured("port"),
            (STAT_GET, False): captured("counters"),
            (SYS_GET, False): captured("system"),
        }
    )
    return RdmaNetlink(kernel), kernel


def test_all_devices_are_told_with_their_guids_as_sysfs_writes_them() -> None:
    netlink, _ = recorded()

    first, second = netlink.devices()

    assert first == RdmaDevice(0, "rxe0", GUID, 1)
    assert (second.index, second.name) == (1, "rxe1")


def test_a_device_is_the_one_of_sysfs_by_name_and_guid_alone() -> None:
    netlink, _ = recorded()

    assert netlink.find("rxe0", GUID).index == 0
    for name, guid in [("rxe0", "5054:00ff:fe00:0002"), ("mlx5_0", GUID), ("rxe0", None)]:
        with pytest.raises(OSError, match="netlink knows no device") as caught:
            netlink.find(name, guid)
        assert caught.value.errno == ENODEV


def test_a_device_without_guid_is_never_taken_for_another_without() -> None:
    """EFA has none: two nodes' devices of one name could not be told apart."""
    made_up = attributes_of(
        (Attribute.DEV_INDEX, 0),
        (Attribute.DEV_NAME, "rdmap16s27"),
        (Attribute.PORT_INDEX, 1),
        (Attribute.NODE_GUID, bytes(8)),
    )
    datagram = struct.pack("=IHHII", 16 + len(made_up), GET, 2, 1, 0) + made_up
    done = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)
    netlink = RdmaNetlink(RecordedKernel({(GET, True): [datagram, done]}))

    assert netlink.devices()[0].guid is None
    with pytest.raises(OSError, match="netlink knows no device"):
        netlink.find("rdmap16s27", None)


def test_a_port_is_told_with_both_its_states_and_its_netdev() -> None:
    netlink, kernel = recorded()

    assert netlink.ports(0) == [RXE0]
    assert parse_port(netlink.port_answer(0, 1)) == RXE0
    assert dict(attributes(kernel.asked[-1][1])) == {1: bytes(4), 3: b"\1\0\0\0"}


def test_a_port_whose_netdev_is_elsewhere_has_none() -> None:
    answer = attributes_of(
        (Attribute.DEV_NAME, "mlx5_0"),
        (Attribute.PORT_INDEX, 1),
        (Attribute.PORT_STATE, b"\2"),
        (Attribute.PORT_PHYS_STATE, b"\5"),
    )

    assert parse_port(answer) == RdmaPort("mlx5_0", 1, 2, 5, None, None)


def test_all_counters_come_in_one_message_by_their_names_in_sysfs() -> None:
    netlink, _ = recorded()

    counters = parse_counters(netlink.counters_answer(0, 1))

    assert (counters.device, counters.number) == ("rxe0", 1)
    assert len(counters.values) == 15
    assert counters.values["hw_counters/link_downed"] == 0


def test_a_counter_keeps_all_of_its_64_bits_and_padding_before_it_is_nothing() -> None:
    entry = attributes_of((82, "tx_bytes"), (0, b""), (83, struct.pack("=Q", (1 << 64) - 1)))
    answer = attributes_of((2, "mlx5_0"), (3, 1), (80, attributes_of((81, entry))))

    assert parse_counters(answer).values == {"hw_counters/tx_bytes": (1 << 64) - 1}


@pytest.mark.parametrize("missing", [2, 3, 12, 13])
def test_an_answer_without_a_state_is_not_taken_for_zero(missing: int) -> None:
    whole = {2: b"rxe0\0", 3: b"\1\0\0\0", 12: b"\4", 13: b"\5"}
    del whole[missing]

    with pytest.raises(MalformedError):
        parse_port(attributes_of(*whole.items()))


@given(st.binary(max_size=300))
def test_of_any_bytes_comes_an_answer_or_the_codecs_own_error(raw: bytes) -> None:
    for parse in (parse_port, parse_counters):
        try:
            parse(raw)
        except MalformedError:
            continue


@given(st.data())
def test_of_a_real_answer_that_was_damaged_likewise(data: st.DataObject) -> None:
    answer = bytearray(captured_payload(data.draw(st.sampled_from(["port", "counters"]))))
    for at in data.draw(st.lists(st.integers(0, len(answer) - 1), min_size=1, max_size=4)):
        answer[at] = data.draw(st.integers(0, 255))
    for parse in (parse_port, parse_counters):
        try:
            parse(bytes(answer))
        except MalformedError:
            continue


@pytest.mark.parametrize(("name", "dump"), [("refused", False), ("dump_refused", True)])
def test_what_the_kernel_refuses_is_its_errno(name: str, dump: bool) -> None:
    netlink = RdmaNetlink(RecordedKernel({(PORT_GET, dump): captured(name)}))

    with pytest.raises(OSError, match="Invalid argument") as caught:
        netlink.ports(99) if dump else netlink.port_answer(99, 1)

    assert caught.value.errno == EINVAL


def test_a_kernel_before_6_12_has_no_monitor() -> None:
    netlink, _ = recorded()

    assert not netlink.has_monitor()


def test_a_kernel_without_rdma_says_so() -> None:
    """A node without the module has none; one with it answers."""
    told = None
    try:
        RdmaNetlink().devices()
    except OSError as error:
        told = error.errno

    assert told in {None, EPROTONOSUPPORT}
