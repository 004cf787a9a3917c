"""A rank without a GPU: a process with the threads that PyTorch gives a rank.

Started with a launcher's variables in its environment. Says READY, then waits for its input to
end. `fork`: has a forked worker, as data loaders are.
"""

import ctypes
import os
import sys
import threading

_PR_SET_NAME = 15
_libc = ctypes.CDLL(None)


def _watchdog(named: threading.Event, ending: threading.Event) -> None:
    _libc.prctl(_PR_SET_NAME, b"pt_nccl_watchdg", 0, 0, 0)
    named.set()
    ending.wait()


def main() -> None:
    opened = [os.open(path, os.O_RDONLY) for path in sys.argv[2:]]
    if sys.argv[1] == "fork" and os.fork() == 0:
        sys.stdin.read()
        os._exit(0)
    named, ending = threading.Event(), threading.Event()
    if sys.argv[1] != "bare":
        threading.Thread(target=_watchdog, args=(named, ending), daemon=True).start()
        named.wait()
    sys.stderr.write("READY\n")
    sys.stderr.flush()
    sys.stdin.read()
    for descriptor in opened:
        os.close(descriptor)


if __name__ == "__main__":
    main()
