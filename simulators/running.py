"""How a simulator runs as a program."""

import signal
import sys
from collections.abc import Callable

from simulators.errors import SimulatorError

_WRONG_USE = 2


def run_to_end(run: Callable[[], None]) -> int:
    """0 when done or told to end, 2 with a sentence on stderr where it cannot begin."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        run()
    except SimulatorError as error:
        print(error, file=sys.stderr)
        return _WRONG_USE
    except KeyboardInterrupt:
        return 0
    return 0
