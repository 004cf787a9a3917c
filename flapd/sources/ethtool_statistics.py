"""EthtoolStatistics: what a driver counts of a netdev's link, by ioctl (`ethtool -S`).

mlx5 asks its firmware dozens of things for it and waits for the lock of all network
configuration: seldom, and never in a thread that others wait for.

The kernel writes as many values as there are now, whatever room it was told
(net/ethtool/ioctl.c: ethtool_get_stats), and their number can change at any moment:
hence more room than any driver could come to need.
"""

import fcntl
import os
import socket
import struct
from array import array
from errno import EAGAIN, EOPNOTSUPP
from itertools import compress

STATISTICS_OF: dict[str, tuple[str, ...]] = {
    "mlx5": (
        *("link_down_events_phy", "rx_pcs_symbol_err_phy", "rx_symbol_err_phy"),
        *("rx_corrected_bits_phy", "rx_bits_phy"),
        *(f"rx_err_lane_{lane}_phy" for lane in range(8)),
        *("rx_crc_errors_phy", "rx_discards_phy", "tx_discards_phy"),
        *("module_unplug", "module_bus_stuck", "module_high_temp", "module_bad_shorted"),
    ),
    "bnxt_re": (
        *("link_down_events", "rx_pcs_symbol_err", "rx_corrected_bits", "rx_bits"),
        *("rx_fec_corrected_blocks", "rx_fec_uncorrectable_blocks", "rx_fcs_err_frames"),
    ),
    "irdma": (
        *("illegal_bytes.nic", "rx_crc_errors.nic"),
        *("mac_local_faults.nic", "mac_remote_faults.nic"),
    ),
}
"""What tells of the link and its module, by the driver of the RDMA device: of mlx5 (en_stats.c),
bnxt_en (bnxt_ethtool.c) and ice (ice_ethtool.c)."""
STATISTICS = frozenset(name for names in STATISTICS_OF.values() for name in names)

_SIOCETHTOOL = 0x8946
_GSTRINGS, _GSTATS, _GSSET_INFO = 0x1B, 0x1D, 0x37
_SET = 1
_NAME_BYTES, _VALUE_BYTES = 32, 8
_IFREQ = struct.Struct("16sP16x")
_SET_INFO = struct.Struct("=IIQI")
_STRINGS_HEAD = struct.Struct("=III")
_VALUES_HEAD = struct.Struct("=II")
_SPARE = 65_536


def value_name(statistic: str) -> str:
    """As the catalogue names it."""
    return f"ethtool/{statistic}"


class EthtoolStatistics:
    """Of one netdev; OSError where it has none of these (EOPNOTSUPP), or is gone (ENODEV)."""

    def __init__(self, netdev: str) -> None:
        self._name = netdev.encode()
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self._names: list[str] = []

    def close(self) -> None:
        self._socket.close()

    def read(self) -> dict[str, int]:
        """Those of STATISTICS that the driver has, as `ethtool/...`."""
        self._names = self._names or self._read_names()
        values = self._values()
        if len(values) != len(self._names):
            self._names = self._read_names()
            values = self._values()
        if len(values) != len(self._names):
            raise OSError(EAGAIN, os.strerror(EAGAIN))
        wanted = [name in STATISTICS for name in self._names]
        names = map(value_name, compress(self._names, wanted))
        return dict(zip(names, compress(values, wanted), strict=True))

    def _values(self) -> list[int]:
        count = len(self._names)
        raw = self._ask(_VALUES_HEAD.pack(_GSTATS, count), count * _VALUE_BYTES, _VALUE_BYTES)
        _, count = _VALUES_HEAD.unpack_from(raw)
        return list(struct.unpack_from(f"={count}Q", raw, _VALUES_HEAD.size))

    def _read_names(self) -> list[str]:
        count = self._count()
        raw = self._ask(
            _STRINGS_HEAD.pack(_GSTRINGS, _SET, count), count * _NAME_BYTES, _NAME_BYTES
        )
        _, _, count = _STRINGS_HEAD.unpack_from(raw)
        places = range(_STRINGS_HEAD.size, _STRINGS_HEAD.size + count * _NAME_BYTES, _NAME_BYTES)
        names = [_text(bytes(raw[at : at + _NAME_BYTES])) for at in places]
        if STATISTICS.isdisjoint(names):
            raise OSError(EOPNOTSUPP, os.strerror(EOPNOTSUPP))
        return names

    def _count(self) -> int:
        raw = self._ask(_SET_INFO.pack(_GSSET_INFO, 0, 1 << _SET, 0), 0, 0)
        _, _, sets, count = _SET_INFO.unpack_from(raw)
        if not sets or not count:
            raise OSError(EOPNOTSUPP, os.strerror(EOPNOTSUPP))
        return int(count)

    def _ask(self, request: bytes, answer_bytes: int, each_bytes: int) -> "array[int]":
        """The request is answered in its place."""
        buffer = array("B", request + bytes(answer_bytes + each_bytes * _SPARE))
        address, _ = buffer.buffer_info()
        fcntl.ioctl(self._socket, _SIOCETHTOOL, _IFREQ.pack(self._name, address))
        return buffer


def _text(raw: bytes) -> str:
    return raw.partition(b"\0")[0].decode("ascii", "replace")
