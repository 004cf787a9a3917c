"""HeldDevice: an RDMA device held open for its events.

pyverbs, 44 or later, opens it and nothing else: its own reading of events keeps all of
Python waiting and does not tell the port, so the descriptor that it hides is found here.
"""

import os
import re
from collections.abc import Callable
from contextlib import suppress
from errno import ENODEV
from pathlib import Path

import msgspec

from flapd.sources.kernel_paths import why_not_kernels

_EVENTS = "anon_inode:[infinibandevent]"
_NODE = re.compile(r".*/(uverbs\d+)")
_DESCRIPTORS = Path("/proc/self/fd")


class HeldDevice(msgspec.Struct, frozen=True):
    """One device held open; while it is, its driver may be unable to let it be removed."""

    device: str
    node: str
    """Its name among class/infiniband_verbs."""
    events: int
    """Descriptor of its events; it never keeps a reader waiting."""
    close: Callable[[], None]


def why_no_verbs(sysfs: Path) -> str | None:
    """The reason in words why there are no verbs here; None where there are."""
    try:
        from pyverbs.device import get_device_list  # noqa: PLC0415 - few nodes have it
    except ImportError as error:
        return f"pyverbs cannot be imported: {error}"
    try:
        found = get_device_list()
    except Exception as error:  # noqa: BLE001 - its own class is known only where it is there
        return f"verbs know no devices here: {error}"
    if not found:
        return "verbs know no devices here"
    return why_not_kernels(sysfs)


def open_by_pyverbs(device: str) -> HeldDevice:
    """All of Python waits meanwhile; OSError where it cannot be opened."""
    from pyverbs.device import Context  # noqa: PLC0415

    before = descriptors()
    try:
        context = Context(name=device)
    except Exception as error:  # noqa: BLE001
        raise OSError(ENODEV, f"cannot be opened: {error}") from None

    def close() -> None:
        with suppress(Exception):  # the device behind it may be gone
            context.close()

    return held_by(device, {*descriptors().items()} - {*before.items()}, close)


def held_by(device: str, opened: set[tuple[int, str]], close: Callable[[], None]) -> HeldDevice:
    """By the descriptors that opening it has opened; it is closed where those are not found."""
    nodes = [match[1] for _, link in opened if (match := _NODE.fullmatch(link))]
    events = [fd for fd, link in opened if link == _EVENTS]
    if len(nodes) != 1 or len(events) != 1:
        close()
        raise OSError(ENODEV, "its events were not found among the descriptors that it opened")
    os.set_blocking(events[0], False)
    return HeldDevice(device, nodes[0], events[0], close)


def descriptors() -> dict[int, str]:
    """What each open descriptor leads to."""
    found = {}
    for link in _DESCRIPTORS.iterdir():
        with suppress(OSError):  # that of the directory itself, and what others closed meanwhile
            found[int(link.name)] = str(link.readlink())
    return found
