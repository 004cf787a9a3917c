"""A kernel that answers RDMA netlink for one port, as its state is now, or goes wrong as asked."""

import struct
from errno import EINVAL

from flapd.sources.netlink_codec import Message
from flapd.sources.rdma_netlink import GET, PORT_GET, Attribute
from tests.sources.netlink_bytes import attributes_of

GUID = "0002:c903:0000:0001"


class MadeUpRdma:
    """Has one device with port 1 and whatever counters."""

    def __init__(self, counters: dict[str, int], guid: str = GUID, device: str = "mlx5_0") -> None:
        self.index = 3
        self.state, self.physical_state = 4, 5
        self.counters = counters
        self.refuses: set[int] = set()
        self.garbles: set[int] = set()
        self.is_gone = False
        self.asked: list[int] = []
        self.closed = False
        self._device = device
        self._guid = int(guid.replace(":", ""), 16)

    def ask(self, kind: int, payload: bytes = b"", *, dump: bool = False) -> list[Message]:
        self.asked.append(kind)
        if kind == GET:
            return [] if self.is_gone else [self._answer(GET, *self._of_device())]
        index = struct.unpack_from("=I", payload, 4)[0]
        if kind in self.refuses or self.is_gone or index != self.index:
            raise OSError(EINVAL, "Invalid argument")
        if kind in self.garbles:
            return [Message(kind, 0, 1, b"\xff\x00garbage")]
        return [self._answer(kind, *(self._states() if kind == PORT_GET else self._counters()))]

    def close(self) -> None:
        self.closed = True

    def _answer(self, kind: int, *pairs: tuple[int, bytes | int | str]) -> Message:
        return Message(kind, 0, 1, attributes_of((Attribute.PORT_INDEX, 1), *pairs))

    def _of_device(self) -> list[tuple[int, bytes | int | str]]:
        return [
            (Attribute.DEV_INDEX, self.index),
            (Attribute.DEV_NAME, self._device),
            (Attribute.NODE_GUID, struct.pack("=Q", self._guid)),
        ]

    def _states(self) -> list[tuple[int, bytes | int | str]]:
        return [
            (Attribute.DEV_NAME, self._device),
            (Attribute.PORT_STATE, bytes([self.state])),
            (Attribute.PORT_PHYS_STATE, bytes([self.physical_state])),
        ]

    def _counters(self) -> list[tuple[int, bytes | int | str]]:
        entries = [
            (
                int(Attribute.STAT_HWCOUNTER_ENTRY),
                attributes_of(
                    (Attribute.STAT_HWCOUNTER_ENTRY_NAME, name),
                    (Attribute.STAT_HWCOUNTER_ENTRY_VALUE, struct.pack("=Q", value)),
                ),
            )
            for name, value in self.counters.items()
        ]
        return [
            (Attribute.DEV_NAME, self._device),
            (Attribute.STAT_HWCOUNTERS, attributes_of(*entries)),
        ]
