"""Kernels before 6.12 have no such messages, and none was at hand: these are made up as
fill_mon_register, fill_mon_netdev_association and fill_mon_netdev_rename (core/nldev.c) do."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.netlink_codec import MalformedError, Message
from flapd.sources.rdma_monitor import DeviceEvent, event_of, open_monitor
from flapd.sources.rdma_netlink import MONITOR, SYS_GET, RdmaNetlink
from tests.sources.netlink_bytes import RecordedKernel, attributes_of, captured


def made_up(*pairs: tuple[int, bytes | int | str]) -> Message:
    return Message(MONITOR, 0, 0, attributes_of(*pairs))


DEVICE = ((1, 3), (2, "mlx5_0"))
NETDEV = ((3, 1), (50, 7), (51, "ens1np0"))


@pytest.mark.parametrize(
    ("message", "event"),
    [
        (made_up(*DEVICE, (102, b"\0")), DeviceEvent("registered", "mlx5_0")),
        (made_up(*DEVICE, (102, b"\1")), DeviceEvent("unregistered", "mlx5_0")),
        (
            made_up(*DEVICE, *NETDEV, (102, b"\2")),
            DeviceEvent("netdev_attached", "mlx5_0", 1, "ens1np0"),
        ),
        (
            made_up(*DEVICE, *NETDEV, (102, b"\3")),
            DeviceEvent("netdev_detached", "mlx5_0", 1, "ens1np0"),
        ),
        (made_up((1, 3), (2, "rdma_a"), (102, b"\4")), DeviceEvent("renamed", "rdma_a")),
        (
            made_up((50, 7), (51, "eth9"), (1, 3), (3, 1), (102, b"\5")),
            DeviceEvent("netdev_renamed", None, 1, "eth9"),
        ),
        (made_up(*DEVICE, (102, b"\x17")), DeviceEvent("23", "mlx5_0")),
    ],
)
def test_each_event_names_its_device(message: Message, event: DeviceEvent) -> None:
    assert event_of(message) == event


def test_a_message_that_does_not_say_what_happened_is_malformed() -> None:
    with pytest.raises(MalformedError):
        event_of(made_up(*DEVICE))


@given(st.binary(max_size=200))
def test_of_any_bytes_comes_an_event_or_the_codecs_own_error(raw: bytes) -> None:
    try:
        event_of(Message(MONITOR, 0, 0, raw))
    except MalformedError:
        return


def test_a_kernel_that_tells_no_events_is_not_listened_to() -> None:
    netlink = RdmaNetlink(RecordedKernel({(SYS_GET, False): captured("system")}))

    with pytest.raises(OSError, match=r"Linux 6\.12"):
        open_monitor(netlink)
