"""EthtoolNetlink: why a link is down, how often it was, and which module is in it.

Numbers: include/uapi/linux/ethtool_netlink.h. Answers wait for the lock of all network
configuration, those of a module for its slow bus as well.
"""

import struct
from collections.abc import Mapping
from errno import EINVAL

import msgspec

from flapd.core.fabric.module_identity import (
    HALF_BYTES,
    ModuleIdentity,
    has_identity_above,
    identity_of,
)
from flapd.sources.netlink_codec import (
    MalformedError,
    attributes,
    encode_attribute,
    number,
    u32,
)
from flapd.sources.netlink_socket import NETLINK_GENERIC, Kernel, NetlinkSocket

_CONTROL, _GET_FAMILY, _FAMILY_ID, _FAMILY_NAME = 16, 3, 1, 2
_GENERIC = struct.Struct("=BBH")
_NESTED = 0x8000
_LINKSTATE_GET, _MODULE_EEPROM_GET = 6, 31
_HEADER, _DEV_NAME, _FLAGS, _WITH_STATISTICS = 1, 2, 3, 4
_LINK, _EXT_STATE, _EXT_DOWN_COUNT = 2, 5, 7
_OFFSET, _LENGTH, _PAGE, _BANK, _I2C_ADDRESS, _DATA = 2, 3, 4, 5, 6, 7
_EEPROM = 0x50

_REASONS = (
    *("autonegotiation", "link training failure", "link logical mismatch"),
    *("bad signal integrity", "no cable", "cable issue", "EEPROM issue", "calibration failure"),
    *("power budget exceeded", "overheat", "module"),
)
"""enum ethtool_link_ext_state (include/uapi/linux/ethtool.h)."""


class LinkState(msgspec.Struct, frozen=True):
    """What the driver says of a link; None is what it does not say."""

    is_up: bool | None
    reason: str | None
    """Why it is down; drivers say it only while it is."""
    downs: int | None
    """How often the link went down, by the physical layer: mlx5 and bnxt_en count it."""


class EthtoolNetlink:
    """Used from one thread at a time; OSError where the kernel refuses.

    EPERM: module EEPROMs need CAP_NET_ADMIN. EOPNOTSUPP: this netdev has no such thing.
    """

    def __init__(self, kernel: Kernel | None = None) -> None:
        self._kernel = kernel or NetlinkSocket(NETLINK_GENERIC)
        self._flags = u32(_WITH_STATISTICS)
        try:
            self._family = self._find_family()
        except OSError:
            self._kernel.close()
            raise

    def close(self) -> None:
        self._kernel.close()

    def link_state(self, netdev: str) -> LinkState:
        told = self._ask_for_link_state(netdev)
        link, reason, downs = map(told.get, (_LINK, _EXT_STATE, _EXT_DOWN_COUNT))
        return LinkState(
            is_up=bool(number(link)) if link is not None else None,
            reason=_reason(number(reason)) if reason is not None else None,
            downs=number(downs) if downs is not None else None,
        )

    def _ask_for_link_state(self, netdev: str) -> Mapping[int, bytes]:
        """With statistics, where the kernel knows that of a link: 6.1 does not."""
        try:
            return self._ask(_LINKSTATE_GET, _header(netdev, self._flags))
        except OSError as error:
            if error.errno != EINVAL or not self._flags:
                raise
        told = self._ask(_LINKSTATE_GET, _header(netdev))
        self._flags = b""
        return told

    def module(self, netdev: str) -> ModuleIdentity | None:
        """None where it is of a kind that is not known."""
        lower = self._half(netdev, 0)
        upper = self._half(netdev, HALF_BYTES) if has_identity_above(lower) else b""
        return identity_of(lower, upper)

    def _half(self, netdev: str, offset: int) -> bytes:
        where = (
            encode_attribute(_OFFSET, u32(offset))
            + encode_attribute(_LENGTH, u32(HALF_BYTES))
            + encode_attribute(_PAGE, b"\0")
            + encode_attribute(_BANK, b"\0")
            + encode_attribute(_I2C_ADDRESS, bytes([_EEPROM]))
        )
        return self._ask(_MODULE_EEPROM_GET, _header(netdev) + where).get(_DATA, b"")

    def _ask(self, command: int, payload: bytes) -> Mapping[int, bytes]:
        return self._ask_family(self._family, command, payload)

    def _find_family(self) -> int:
        told = self._ask_family(_CONTROL, _GET_FAMILY, encode_attribute(_FAMILY_NAME, b"ethtool\0"))
        return number(told.get(_FAMILY_ID, b""))

    def _ask_family(self, family: int, command: int, payload: bytes) -> Mapping[int, bytes]:
        answer = self._kernel.ask(family, _GENERIC.pack(command, 1, 0) + payload)
        if len(answer) != 1:
            raise MalformedError("an acknowledgement where an answer should be")
        return dict(attributes(answer[0].payload[_GENERIC.size :]))


def _header(netdev: str, flags: bytes = b"") -> bytes:
    header = encode_attribute(_DEV_NAME, netdev.encode() + b"\0")
    if flags:
        header += encode_attribute(_FLAGS, flags)
    return encode_attribute(_HEADER | _NESTED, header)


def _reason(state: int) -> str:
    return _REASONS[state] if state < len(_REASONS) else f"state {state} of the driver"
