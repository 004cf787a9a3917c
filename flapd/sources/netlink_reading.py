"""NetlinkReading: what RDMA netlink tells of a port goes into its draft, instead of files.

The values are the same either way (drivers/infiniband/core: sysfs.c and nldev.c ask the driver
alike): two states of one moment, and all hardware counters for one refresh of them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TypeVar

from flapd.sources.netlink_port import NetlinkPort
from flapd.sources.port_file import REREGISTERED, PortFile
from flapd.sources.sample_draft import SampleDraft

_NONE: Mapping[str, int] = MappingProxyType({})
_HARDWARE = "hw_counters/"

T = TypeVar("T")


class NetlinkReading:
    """Of one port; where there is no netlink, or it tells nothing, all is in the files."""

    def __init__(
        self,
        netlink: NetlinkPort | None,
        draft: SampleDraft,
        *,
        states: Sequence[PortFile],
        slow: Sequence[PortFile],
        others: Collection[str],
    ) -> None:
        """`slow` are the files that it may tell instead of; of `others` it tells nothing."""
        self.told_states = False
        self.counters = _NONE
        """What it told last."""
        self._netlink = netlink if states else None
        self._draft = draft
        self._states = states
        self._slow = self._left = slow
        self._elsewhere = frozenset(others) - {file.name for file in slow}
        self._has_hardware = any(file.name.startswith(_HARDWARE) for file in slow)
        self._registered: int | None = None
        """Under which number it knew the device when that was last told of."""

    def tells_states(self, now_ns: int) -> bool:
        """Whether both are known by it now."""
        if self._netlink is None:
            return False
        told = self._told(NetlinkPort.state, now_ns)
        self.told_states = told is not None
        if told is not None:
            for file in self._states:
                file.forget()
            self._draft.know(told)
        return self.told_states

    def files_left(self, now_ns: int) -> Sequence[PortFile]:
        """Takes all counters that it tells; the slow files that must be read all the same."""
        if self._netlink is not None and self._has_hardware:
            self._take(self._told(NetlinkPort.hardware_counters, now_ns) or _NONE)
        return self._left

    def _take(self, told: Mapping[str, int]) -> None:
        """Equal answers are the same object."""
        before, self.counters = self.counters, told
        if told is before:
            return
        self._draft.know({name: told[name] for name in told if name not in self._elsewhere})
        if told.keys() == before.keys():
            return
        self._left = [file for file in self._slow if file.name not in told]
        for file in self._slow:
            if file.name in told:
                file.forget()
        only_told = before.keys() - {file.name for file in self._slow} - self._elsewhere
        if gone := only_told - told.keys():
            self._draft.lose(gone, "ENOENT")

    def _told(self, ask: Callable[[NetlinkPort], T | None], now_ns: int) -> T | None:
        """None where files must be read; a new registration is told before what is of it."""
        netlink = self._netlink
        if netlink is None or self._draft.must_tell(self._states[0].name, REREGISTERED):
            return None
        told = ask(netlink)
        before, self._registered = self._registered, netlink.registered
        if before in {None, netlink.registered}:
            return told
        for file in self._states:
            file.failed(REREGISTERED, now_ns)
            self._draft.lose(file.value_names, REREGISTERED)
        return None
