"""`python -m simulators.demo`: prints flaps of a job's links, and what became of the job."""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from flapd.model.times import SECOND_NS
from simulators.demo import words
from simulators.demo.cast import Cast
from simulators.demo.service import LOOK_EVERY_SECONDS
from simulators.demo.site import nats_server
from simulators.demo.story import FLAPS, gone_seconds, story
from simulators.errors import SimulatorError
from simulators.fabric.truth import Truth

_SETTLE_SECONDS = 5.0
_SAID: dict[str, Callable[[Any], str | None]] = {
    "jobs": words.job,
    "flaps": words.flap,
    "faults": words.fault,
    "stalls": words.stall,
    "incidents": words.incident,
}


def main() -> int:
    """0 where all that happened was found; 1 otherwise, or where it cannot begin."""
    parser = argparse.ArgumentParser(
        prog="python -m simulators.demo",
        description="The real agent on simulated nodes of a training job, some of whose links "
        "flap, and the hub of the fleet: what they tell, as it happens.",
    )
    parser.add_argument(
        "--end", action="store_true", help="end when the story is over, also on a terminal"
    )
    parser.add_argument("--one-node", action="store_true", help="one agent, and no fleet")
    asked = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        with ExitStack() as stack:
            demo = Demo(stack, None if asked.one_node else _found_server())
            return demo.run(ends_by_itself=asked.end or not sys.stdin.isatty())
    except KeyboardInterrupt:
        print()
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SimulatorError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


def _found_server() -> str | None:
    found = nats_server()
    if found is None:
        print("There is no nats-server here, so this shows one node and no fleet;")
        print("`make system-packages` (needs root) would bring it.\n")
    return found


class Demo:
    """One run, and what is printed of it."""

    def __init__(self, stack: ExitStack, server: str | None) -> None:
        """`server` is the program; None: there is one node, and no fleet."""
        # Another demo beside this one has another job.
        self._run = story(str(os.getpid()))
        self._cast = Cast(stack, self._run, server)
        self._latest: dict[str, dict[str, words.Item]] = {what: {} for what in _SAID}
        self._printed: set[tuple[str, str]] = set()

    def run(self, *, ends_by_itself: bool) -> int:
        print(self._cast.introduction())
        truth = self._cast.begin()
        print(self._cast.where_to_look())
        seconds = FLAPS[0].at_seconds
        print(f"The job begins; its traffic is learned, and after {seconds:.0f} s links will flap.")
        sys.stdout.flush()
        self._follow(truth)
        fatal = self._fatal()
        if fatal is not None:
            print(f"\n{self._cast.why(fatal['id'])}", flush=True)
        all_found = self._print_balance() and fatal is not None
        print(self._cast.page())
        if not ends_by_itself:
            print("All of it runs on; Ctrl-C ends it.")
            threading.Event().wait()
        return 0 if all_found else 1

    def _follow(self, truth: Truth) -> None:
        """Until all is over, and what is told of it has come."""
        seconds = max(gone_seconds(self._run), FLAPS[-1].usable_at) + _SETTLE_SECONDS
        ends_ns = truth.origin_monotonic_ns + round(seconds * SECOND_NS)
        while time.monotonic_ns() < ends_ns:
            self._cast.look()
            for what, said in _SAID.items():
                for item in reversed(self._items(what)):
                    self._latest[what][item["id"]] = item
                    self._print_news(item["id"], said(item))
            time.sleep(LOOK_EVERY_SECONDS)

    def _items(self, what: str) -> list[words.Item]:
        """Of this job: there may be others on this machine."""
        job = self._run.spec.job
        items: list[words.Item] = self._cast.teller_of(what).get(f"/{what}")["items"]
        return [item for item in items if item.get("job", job) == job]

    def _print_news(self, item_id: str, text: str | None) -> None:
        # Many a revision only says some number better.
        key = item_id, "" if text is None else words.told_once(text)
        if text is not None and key not in self._printed:
            self._printed.add(key)
            print(text, flush=True)

    def _fatal(self) -> words.Item | None:
        """The incident in which the job died."""
        told = self._latest["incidents"].values()
        return next((one for one in told if one["regime"] == "transport_abort"), None)

    def _print_balance(self) -> bool:
        recorded = sum(int(flap["count"]) for flap in self._latest["flaps"].values())
        print(f"The simulation took links down {len(FLAPS)} times; flapd recorded {recorded}.")
        return recorded == len(FLAPS)


if __name__ == "__main__":
    sys.exit(main())
