"""Queue pairs by process and port, from answers as the kernel makes them."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.sources.jobs.queue_pairs import RES_GET, RES_QP_GET, parse_queue_pairs, queue_pairs
from flapd.sources.netlink_codec import MalformedError
from flapd.sources.rdma_netlink import GET, Attribute
from tests.sources.netlink_bytes import RecordedKernel, attributes_of

_RTS, _ERR = 3, 6
DONE = struct.pack("=IHHIIi", 20, 3, 2, 1, 0, 0)


def message(kind: int, payload: bytes, *, multi: bool) -> bytes:
    return struct.pack("=IHHII", 16 + len(payload), kind, 2 if multi else 0, 1, 0) + payload


def device(index: int, name: str, guid: int, ports: int = 1) -> bytes:
    return attributes_of(
        (Attribute.DEV_INDEX, index),
        (Attribute.DEV_NAME, name),
        (Attribute.PORT_INDEX, ports),
        (Attribute.NODE_GUID, struct.pack("=Q", guid)),
    )


def pair(number: int, state: int, pid: int | None, port: int | None = 1) -> bytes:
    told: list[tuple[int, bytes | int | str]] = [(21, number), (27, bytes([state]))]
    told += [] if port is None else [(int(Attribute.PORT_INDEX), port)]
    told += [(29, "ib_core")] if pid is None else [(28, pid)]
    return attributes_of((20, attributes_of(*told)))


def summary(pairs: int) -> bytes:
    entries = attributes_of(
        (16, attributes_of((17, "pd"), (18, struct.pack("=Q", 9)))),
        (16, attributes_of((17, "qp"), (18, struct.pack("=Q", pairs)))),
    )
    return message(RES_GET, attributes_of((15, entries)), multi=False)


def kernel_with(*pairs: bytes, count: int | None = None, ports: int = 1) -> RecordedKernel:
    devices = message(GET, device(0, "mlx5_0", 0x0002C903_00000001, ports), multi=True)
    told = message(RES_QP_GET, attributes_of((1, 0), (19, b"".join(pairs))), multi=True)
    return RecordedKernel(
        {
            (GET, True): [devices, DONE],
            (RES_GET, False): [summary(len(pairs) if count is None else count)],
            (RES_QP_GET, True): [told, DONE],
        }
    )


def test_queue_pairs_are_counted_by_who_opened_the_device_and_by_port() -> None:
    kernel = kernel_with(
        pair(1, _RTS, None), pair(2, _RTS, 700), pair(3, _ERR, 700), pair(4, _RTS, 800)
    )

    found = queue_pairs(kernel, lambda one: one.guid)

    port = "0002:c903:0000:0001/1"
    assert found.all == {700: {port: 2}, 800: {port: 1}}
    assert found.in_error == {700: {port: 1}}
    assert found.blind_to == ()


@pytest.mark.parametrize(("ports", "known"), [(1, True), (2, False)])
def test_one_that_is_bound_to_no_port_is_of_the_only_one_if_there_is_but_one(
    ports: int, known: bool
) -> None:
    kernel = kernel_with(pair(1, 0, 700, port=None), ports=ports)

    assert bool(queue_pairs(kernel, lambda one: one.guid).all) == known


def test_a_device_with_very_many_is_not_asked_and_that_is_told() -> None:
    kernel = kernel_with(pair(1, _RTS, 700), count=5000)

    found = queue_pairs(kernel, lambda one: one.guid)

    assert found.all == {}
    assert "there are 5000" in found.blind_to[0]
    assert RES_QP_GET not in [kind for kind, _ in kernel.asked]


def test_a_device_that_is_not_watched_is_not_asked() -> None:
    kernel = kernel_with(pair(1, _RTS, 700))

    assert queue_pairs(kernel, lambda _: None).all == {}
    assert [kind for kind, _ in kernel.asked] == [GET]


@given(st.binary(max_size=200))
def test_of_any_bytes_come_queue_pairs_or_the_codecs_own_error(raw: bytes) -> None:
    try:
        list(parse_queue_pairs(raw))
    except MalformedError:
        return
