"""Rank: a process that looks like one of PyTorch's, prints what it is told, and sleeps.

Its threads have the names of the watchdog and the heartbeat monitor (ProcessGroupNCCL.cpp); what
comes on its standard input goes to its standard output. It ends with its input.
"""

import ctypes
import os
import threading

_PR_SET_NAME = 15
_WATCHDOG, _HEARTBEAT = b"pt_nccl_watchdg", b"pt_nccl_heartbt"


def main() -> None:
    for name in (_WATCHDOG, _HEARTBEAT):
        named = threading.Event()
        threading.Thread(target=_sleep, args=(name, named), daemon=True).start()
        named.wait()
    while True:
        text = os.read(0, 65536)
        if not text:
            return
        os.write(1, text)


def _sleep(name: bytes, named: threading.Event) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_NAME, name)
    named.set()
    threading.Event().wait()


if __name__ == "__main__":
    main()
