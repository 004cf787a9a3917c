"""Kernel clock: what the kernel knows of the error of its wall clock, by adjtimex(2)."""

import ctypes

from flapd.model.fleet import ClockState

_STA_PLL, _STA_UNSYNC, _STA_NANO = 0x0001, 0x0040, 0x2000
"""include/uapi/linux/timex.h, as the structure below."""
_MICROSECOND, _NANOSECOND = 1e-6, 1e-9


class _Timex(ctypes.Structure):
    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    )


def clock_state() -> ClockState | None:
    """None where the kernel does not tell, as under a system call filter.

    The offset is the kernel's only where its own loop steers the clock (ntpd, timesyncd); chrony
    steers by the frequency, and tells the kernel no more than how large the error may be.
    """
    timex = _Timex(modes=0)
    if ctypes.CDLL(None).adjtimex(ctypes.byref(timex)) < 0:
        return None
    is_synchronized = not timex.status & _STA_UNSYNC
    unit = _NANOSECOND if timex.status & _STA_NANO else _MICROSECOND
    return ClockState(
        is_synchronized=is_synchronized,
        offset_seconds=timex.offset * unit if timex.status & _STA_PLL else None,
        estimated_error_seconds=timex.esterror * _MICROSECOND if is_synchronized else None,
        largest_error_seconds=timex.maxerror * _MICROSECOND if is_synchronized else None,
    )
