"""Lines of the kernel's log that tell why a link went down, or that it did.

A line is a hint: it can be late, missing (drivers limit their rate, and mlx5 prints none
for an InfiniBand port) or about somebody else's read. What it may do is to give an outage
its reason, and to have the port read at once.

Record: Documentation/ABI/testing/dev-kmsg. Texts, all of Linux 6.12: mlx5 en_main.c, events.c,
health.c, cmd.c, fw_reset.c; bnxt.c; ice_main.c; mlx4 en_netdev.c; hfi1 chip.c, intr.c;
rxe_net.c; drivers/pci/pcie/aer.c, dpc.c; drivers/pci/hotplug/pciehp_ctrl.c; drivers/pci/pci.c;
net/core/dev.c. Left out is `... failed, status ..., syndrome ...` of mlx5: polling causes it too.
"""

import re

import msgspec

from flapd.model.observation import KernelLine, KernelLineAbout

LONGEST_REASON = 200

_RECORD = re.compile(r"(\d{1,4}),(\d{1,20}),(\d{1,20}),[^;\n]*;([^\n]*)")
_KERNEL = 0
_FACILITY_SHIFT = 3

_PCI = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]"
_NETDEV = r"[^\s:/]{1,15}"
_SUBJECTS = (
    re.compile(rf"\w+ (?P<pci>{_PCI})(?: (?P<netdev>{_NETDEV})(?: \([a-z ]+\))?)?: (?P<text>.*)"),
    re.compile(rf"mlx4_en: (?P<netdev>{_NETDEV}): (?P<text>.*)"),
    re.compile(r"infiniband (?P<device>[^\s:/]{1,63}): (?P<text>.*)"),
    re.compile(
        rf"(?P<text>unregister_netdevice: waiting for (?P<netdev>{_NETDEV}) to become free\..*)"
    ),
)
_BEFORE_THE_TEXT = re.compile(
    r"\w+:\d+:\(pid \d+\): "  # mlx5_core_err: function, line, process
    r"|(?P<device>hfi1_\d+): "
    r"|AER: |DPC: |pciehp: "
)
_FROM = re.compile(rf".* received from (?P<pci>{_PCI})")

_PATTERNS: tuple[tuple[KernelLineAbout, str], ...] = (
    ("link_down", r"(?:NIC )?Link (?:is )?[Dd]own"),
    ("link_down", r"set down"),
    ("link_down", r"8051: Link down(?P<reason>.*)"),
    ("link_down", r"Unexpected link down"),
    ("link_down", r"Link error: (?P<reason>.+)"),
    ("link_up", r"(?:NIC )?Link (?:is )?[Uu]p(?:[ ,].*)?"),
    ("link_up", r"set active"),
    ("link_up", r"8051: Link up"),
    ("module", r"Port module event(?:\[error\])?: module \d+, (?P<reason>.+)"),
    ("temperature", r"(?P<reason>High temperature on sensors with bit set .*)"),
    ("firmware", r"(?P<reason>device's health compromised - reached miss count)"),
    ("firmware", r"(?P<reason>Fatal error \d+ detected)"),
    ("firmware", r"(?P<reason>Health issue observed, .*)"),
    ("firmware", r"(?P<reason>(?:starting )?health recovery .*)"),
    ("firmware", r"(?P<reason>.*timeout\. Will cause a leak of a command resource)"),
    ("firmware", r"(?P<reason>.*No done completion)"),
    ("firmware", r"(?P<reason>.*timed out while waiting for a slot\.)"),
    ("firmware", r"(?P<reason>.* recovered after timeout)"),
    ("pcie", r"(?P<reason>PCI link not ready .*)"),
    ("pcie", r"(?P<reason>(?:Multiple )?[A-Z][\w() -]* error message received from .*)"),
    ("pcie", r"(?P<reason>PCIe Bus Error: severity=.*)"),
    ("pcie", r"(?P<reason>containment event, status:.*)"),
    ("pcie", r"(?P<reason>Slot\(.+\): Link Down)"),
    ("pcie", r"(?P<reason>[\d.]+ Gb/s available PCIe bandwidth, limited by .*)"),
    ("held", r"(?P<reason>unregister_netdevice: waiting for .*)"),
)
_TEXTS = [(about, re.compile(pattern)) for about, pattern in _PATTERNS]


class Record(msgspec.Struct, frozen=True):
    """One record of the kernel's log."""

    sequence: int
    stamp_us: int
    """By a clock of its own (local_clock), which NTP does not steer."""
    text: str
    by_kernel: bool
    """And not written by some process."""


def parse_record(raw: bytes) -> Record | None:
    """None where it is no record."""
    match = _RECORD.match(raw.decode("utf-8", "replace"))
    if match is None:
        return None
    prefix, sequence, stamp_us = map(int, match.groups()[:3])
    return Record(sequence, stamp_us, match[4], prefix >> _FACILITY_SHIFT == _KERNEL)


def parse_line(text: str) -> KernelLine | None:
    """None where it tells nothing of a link, its module, its card or its slot."""
    for subject in _SUBJECTS:
        if (named := subject.fullmatch(text)) is not None:
            return _line(named.groupdict())
    return None


def _line(named: dict[str, str | None]) -> KernelLine | None:
    text = named.pop("text") or ""
    while (before := _BEFORE_THE_TEXT.match(text)) is not None:
        named["device"] = before["device"] or named.get("device")
        text = text[before.end() :]
    for about, pattern in _TEXTS:
        if (match := pattern.fullmatch(text)) is not None:
            if (sender := _FROM.fullmatch(text)) is not None:  # not the bridge that reports it
                named["pci"] = sender["pci"]
            return KernelLine(about=about, reason=_reason(match), **named)
    return None


def _reason(match: re.Match[str]) -> str | None:
    told = match.groupdict().get("reason") or ""
    return told.strip()[:LONGEST_REASON] or None
