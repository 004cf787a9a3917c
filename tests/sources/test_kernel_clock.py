"""What the kernel says of its clock is told as it says it; a filter that forbids asking is no 0."""

import subprocess
import sys

from flapd.sources.kernel_clock import clock_state

FORBIDDEN = """
import ctypes
libc = ctypes.CDLL(None)

class Filter(ctypes.Structure):
    _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte),
                ("k", ctypes.c_uint)]

class Program(ctypes.Structure):
    _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Filter))]

numbers = {"x86_64": (159, 305), "aarch64": (171, 266)}[__import__("os").uname().machine]
rules = [(0x20, 0, 0, 0)]
rules += [(0x15, len(numbers) - at, 0, number)
          for at, number in enumerate(numbers)]
rules += [(0x06, 0, 0, 0x7FFF0000), (0x06, 0, 0, 0x00050001)]
filters = (Filter * len(rules))(*[Filter(*rule) for rule in rules])
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, ctypes.byref(Program(len(rules), filters)), 0, 0) == 0
from flapd.sources.kernel_clock import clock_state
print(clock_state())
"""


def test_an_error_is_told_only_of_a_clock_that_is_synchronized() -> None:
    state = clock_state()

    assert state is not None
    errors = (state.estimated_error_seconds, state.largest_error_seconds)
    assert [error is not None for error in errors] == [state.is_synchronized] * 2


def test_where_asking_is_forbidden_nothing_is_known() -> None:
    """As under `ProtectClock=` of systemd: the call gives EPERM."""
    asked = subprocess.run(
        [sys.executable, "-c", FORBIDDEN], capture_output=True, text=True, check=True
    )

    assert asked.stdout.strip() == "None"
