"""Kernel: lines of its log that tell of a card in trouble, as evidence beside all other."""

from hashlib import blake2b

from flapd.model.fault import Fault
from flapd.model.observation import KernelHint, KernelLineAbout
from flapd.model.port import Port
from flapd.model.times import SECOND_NS

_TROUBLE: frozenset[KernelLineAbout] = frozenset({"firmware", "pcie"})
"""What lines tell of a link is its outage's reason, and no fault besides."""
_STAMP_ERROR_NS = SECOND_NS
"""The kernel stamps its log by a clock that NTP does not steer."""


def fault_of(hint: KernelHint, node: str, boot: str, port: Port, wall_offset_ns: int) -> Fault:
    """What a line about this port's device is evidence of."""
    reason = hint.line.reason or hint.line.about
    said = f"{node}|{boot}|{hint.logged_ns}|{port.device}|{reason}"
    return Fault(
        id="fault-" + blake2b(said.encode(), digest_size=8).hexdigest(),
        kind="kernel",
        form=hint.line.about,
        text=reason,
        time_ns=hint.logged_ns + wall_offset_ns,
        clock_error_ns=_STAMP_ERROR_NS,
        arrived_ns=hint.received_ns + wall_offset_ns,
        hca=port.device,
        event=hint.line.about,
    )


def is_trouble(hint: KernelHint) -> bool:
    return hint.line.about in _TROUBLE


def is_about(hint: KernelHint, port: Port) -> bool:
    """It names the port's card, netdev or device."""
    line = hint.line
    named = ((line.pci, port.pci), (line.netdev, port.netdev), (line.device, port.device))
    return any(told is not None and told == own for told, own in named)
