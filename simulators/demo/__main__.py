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
from simulators.demo.child import scratch
from simulators.demo.stage import CHECKPOINT_EVERY, LOOK_EVERY_SECONDS, RESTART, Stage
from simulators.demo.story import FLAPS, WATCHDOG_SECONDS, gone_seconds, story
from simulators.errors import SimulatorError
from simulators.fabric.truth import Truth
from simulators.job.record import Run

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
        description="The real agent on a simulated node of a training job, some of whose links "
        "flap: what it tells, as it happens.",
    )
    parser.add_argument(
        "--end", action="store_true", help="end when the story is over, also on a terminal"
    )
    ends_by_itself = parser.parse_args().end or not sys.stdin.isatty()
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, lambda *_: sys.exit(0))
    try:
        with ExitStack() as stack:
            return Demo(stack).run(ends_by_itself)
    except KeyboardInterrupt:
        print()
        return 0
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except SimulatorError as error:
        print(f"demo: {error}", file=sys.stderr)
        return 1


class Demo:
    """One run, and what is printed of it."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        # Another demo beside this one has another job.
        self._run = story(str(os.getpid()))
        self._stage = Stage(stack.enter_context(scratch()))
        self._latest: dict[str, dict[str, words.Item]] = {what: {} for what in _SAID}
        self._printed: set[tuple[str, str]] = set()

    def run(self, ends_by_itself: bool) -> int:
        enter = self._stack.enter_context
        _print_job(self._run)
        truth = enter(self._stage.fabric(self._run))
        enter(self._stage.job(self._run, truth.origin_monotonic_ns))
        enter(self._stage.agent())
        self._print_where_to_look()
        self._follow(truth)
        fatal = self._fatal()
        if fatal is not None:
            print(f"\n$ flapd why {fatal['id']}")
            print(self._stage.flapd("why", fatal["id"]), flush=True)
        all_found = self._print_balance() and fatal is not None
        if not ends_by_itself:
            print("The agent runs on; Ctrl-C ends it.")
            threading.Event().wait()
        return 0 if all_found else 1

    def _print_where_to_look(self) -> None:
        config = f"--config {self._stage.config}"
        print("Look for yourself, in a browser and in another terminal:")
        print(f"  {self._stage.url}/")
        print(f"  .venv/bin/flapd watch {config}")
        print(f"  .venv/bin/flapd flaps {config}")
        print(f"  .venv/bin/flapd incidents {config}")
        print(f"  curl -s {self._stage.url}/metrics | grep flapd_")
        print()
        seconds = FLAPS[0].at_seconds
        print(f"The job begins; its traffic is learned, and after {seconds:.0f} s links will flap.")

    def _follow(self, truth: Truth) -> None:
        """Until all is over, and what is told of it has come."""
        seconds = max(gone_seconds(self._run), FLAPS[-1].usable_at) + _SETTLE_SECONDS
        ends_ns = truth.origin_monotonic_ns + round(seconds * SECOND_NS)
        while time.monotonic_ns() < ends_ns:
            for what, said in _SAID.items():
                for item in reversed(self._items(what)):
                    self._latest[what][item["id"]] = item
                    self._print_news(item["id"], said(item))
            time.sleep(LOOK_EVERY_SECONDS)

    def _items(self, what: str) -> list[words.Item]:
        """Of this job: there may be others on this machine."""
        job = self._run.spec.job
        items: list[words.Item] = self._stage.get(f"/{what}")["items"]
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


def _print_job(run: Run) -> None:
    spec, software = run.spec, run.spec.software
    print(
        f"flapd on one simulated node of job {spec.job}: {spec.world_size:,} GPUs, "
        f"{spec.ranks_per_node} of them here, each with an\n"
        f"InfiniBand port of 400 Gb/s; PyTorch {software.torch}, NCCL {software.nccl}. "
        "All timeouts are short, so that nobody\n"
        f"has to wait: NCCL_IB_TIMEOUT={spec.ib_timeout} (gives up after 2 to 8 s), "
        f"watchdog {WATCHDOG_SECONDS:.0f} s.\n"
        f"The configuration says: {RESTART} to restart, a checkpoint every {CHECKPOINT_EVERY}."
    )


if __name__ == "__main__":
    sys.exit(main())
