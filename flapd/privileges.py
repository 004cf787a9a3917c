"""Privileges: what a unit or a container gives is for those who read, not for who speaks HTTP.

capabilities(7): ambient ones pass to what a process starts; of root, all that are in its bounding
set do.
"""

import ctypes
import os

_VERSION = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3 (include/uapi/linux/capability.h)."""
_WORDS = 2
_WORD_BITS = 32
_REACHES_ALL_FILES = 1 << 1
"""CAP_DAC_OVERRIDE: root as it is outside of containers."""
_BOUNDING_SET_READ, _BOUNDING_SET_DROP, _NO_NEW_PRIVILEGES = 23, 24, 38
"""PR_CAPBSET_READ, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS (include/uapi/linux/prctl.h)."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def has_some_to_lay_down() -> bool:
    """Of this thread; False where it has none, or needs them: OSError.

    Root that may open everybody's files does so, its socket is of another group, and its
    certificates may be another's.
    """
    lower, upper = _sets_of(_kernel())
    needs_them = os.geteuid() == 0 and lower.permitted & _REACHES_ALL_FILES
    return bool((lower.permitted or upper.permitted) and not needs_them)


def lay_down_for_good() -> None:
    """Of this thread and of those that it starts: none can be had any more, by nothing; OSError.

    To be called before there are threads.
    """
    kernel = _kernel()
    for number in range(_WORDS * _WORD_BITS):
        # Without CAP_SETPCAP it stays, and gives nothing to who can have no new privileges.
        if kernel.prctl(_BOUNDING_SET_READ, number, 0, 0, 0) == 1:
            kernel.prctl(_BOUNDING_SET_DROP, number, 0, 0, 0)
    _checked(kernel.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0))
    # With what may be inherited go those that are ambient.
    none = (_Sets * _WORDS)()
    _checked(kernel.capset(ctypes.byref(_Header(_VERSION, 0)), none))


def _sets_of(kernel: ctypes.CDLL) -> "ctypes.Array[_Sets]":
    sets = (_Sets * _WORDS)()
    _checked(kernel.capget(ctypes.byref(_Header(_VERSION, 0)), sets))
    return sets


def _kernel() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
