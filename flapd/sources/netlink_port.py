"""NetlinkPort: one port read over RDMA netlink, for as long as that works.

Where it does not, sysfs must be read: None says so, and `refused` why.
"""

import time
from collections.abc import Callable, Mapping
from errno import ENODEV
from typing import Generic, Protocol, TypeVar

from flapd.core.fabric.catalogue import PHYSICAL_STATE, STATE
from flapd.model.times import SECOND_NS
from flapd.sources.files import reason_of
from flapd.sources.rdma_netlink import RdmaNetlink, parse_counters, parse_port

FIRST_PAUSE_NS = SECOND_NS
"""What netlink refuses it is asked for again after this: a device that is registered anew is
refused once. Then after pauses that double,"""
LONGEST_PAUSE_NS = 60 * SECOND_NS
"""up to this."""


class _Told(Protocol):
    @property
    def device(self) -> str: ...
    @property
    def number(self) -> int: ...


T = TypeVar("T", bound=_Told)


class _Question(Generic[T]):
    """One thing to ask, and what was told last."""

    def __init__(
        self, name: str, ask: Callable[[int, int], bytes], parse: Callable[[bytes], T]
    ) -> None:
        self.name = name
        self.ask = ask
        self.again_ns = 0
        self._pause_ns = FIRST_PAUSE_NS
        self._parse = parse
        self._answer: bytes | None = None
        self._told: T | None = None

    def told_by(self, answer: bytes) -> T:
        """Most answers say what the last one said."""
        if self._told is None or answer != self._answer:
            self._answer, self._told = answer, self._parse(answer)
        return self._told

    def was_answered(self) -> None:
        self._pause_ns = FIRST_PAUSE_NS

    def was_refused(self, now_ns: int) -> None:
        self.again_ns = now_ns + self._pause_ns
        self._pause_ns = min(2 * self._pause_ns, LONGEST_PAUSE_NS)


class NetlinkPort:
    """Used from one thread at a time, which may be that of other ports of the same netlink."""

    def __init__(
        self,
        netlink: RdmaNetlink,
        device: str,
        guid: str | None,
        number: int,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.refused: dict[str, str] = {}
        """What does not work now, and why: `PORT_GET` -> `EINVAL`."""
        self.registered: int | None = None
        """Number of the device; another one: it was registered anew, and counts anew."""
        self._netlink = netlink
        self._device = device
        self._guid = guid
        self._number = number
        self._index: int | None = None
        self._state = _Question("PORT_GET", netlink.port_answer, parse_port)
        self._counters = _Question("STAT_GET", netlink.counters_answer, parse_counters)
        self._now_ns = now_ns

    def state(self) -> dict[str, int] | None:
        """State and physical state of one moment."""
        port = self._ask(self._state)
        if port is None:
            return None
        return {STATE: port.state, PHYSICAL_STATE: port.physical_state}

    def hardware_counters(self) -> Mapping[str, int] | None:
        """All there are; what sysfs has and this has not must be read there."""
        counters = self._ask(self._counters)
        return None if counters is None else counters.values

    def _ask(self, question: _Question[T]) -> T | None:
        if self._now_ns() < question.again_ns:
            return None
        try:
            told = self._told(question)
        except OSError as error:
            self.refused[question.name] = reason_of(error)
            question.was_refused(self._now_ns())
            self._index = None
            return None
        self.refused.pop(question.name, None)
        question.was_answered()
        return told

    def _told(self, question: _Question[T]) -> T:
        told = question.told_by(self._answer(question.ask))
        if (told.device, told.number) != (self._device, self._number):
            raise OSError(ENODEV, f"{self._device}/{self._number} is {told.device} now")
        return told

    def _answer(self, ask: Callable[[int, int], bytes]) -> bytes:
        """A device that was registered anew has another number: then it is asked by that."""
        index = self._index
        if index is None:
            self._index = index = self._find()
        try:
            return ask(index, self._number)
        except OSError:
            self._index = self._find()
            if self._index == index:
                raise
            return ask(self._index, self._number)

    def _find(self) -> int:
        self.registered = self._netlink.find(self._device, self._guid).index
        return self.registered
