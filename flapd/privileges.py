"""Privileges: which of them the process that speaks HTTP lays down, and its children still get.

A unit can give a reader more than the agent itself needs (systemd/drop-ins): by ambient
capabilities, which a process passes on by exec without having them in effect (capabilities(7)).
"""

import ctypes
import os

_VERSION = 0x20080522
"""_LINUX_CAPABILITY_VERSION_3 (include/uapi/linux/capability.h)."""
_WORDS = 2


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


def lay_down_capabilities() -> None:
    """Of this thread and of those that it starts: none is in effect any more; OSError.

    To be called before there are threads. Root keeps them, who needs them to reach files of
    other owners.
    """
    if os.geteuid() == 0:
        return
    kernel = ctypes.CDLL(None, use_errno=True)
    header, sets = _Header(_VERSION, 0), (_Sets * _WORDS)()
    _checked(kernel.capget(ctypes.byref(header), sets))
    for word in sets:
        word.effective = 0
    _checked(kernel.capset(ctypes.byref(header), sets))


def _checked(result: int) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
