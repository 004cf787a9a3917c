"""The demo: the real agent on a simulated node; prints each flap as the agent tells it."""

import argparse
import ctypes
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from simulators.errors import SimulatorError
from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import two_ports
from simulators.fabric.truth import Truth

ROOT = Path(__file__).parent.parent
PORT = 19315
BEGINS_AFTER_SECONDS = 4.0
READY_WITHIN_SECONDS = 20.0
LOOK_EVERY_SECONDS = 0.1
SETTLE_SECONDS = 3.0

FLAPS = {
    "mlx5_0/1": (Flap(0.0, 0.3), Flap(6.0, 2.0), Flap(13.0, 0.02)),
    "mlx5_1/1": (Flap(3.0, 0.05), Flap(9.0, 1.2)),
}
"""An absorbed flap, one long enough to hurt, and two that no look at the state would catch."""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m simulators.demo", description=__doc__)
    parser.add_argument(
        "--end", action="store_true", help="end after the last flap, also on a terminal"
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
    """One run: fabric, agent, and what is printed of them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self._directory = Path(stack.enter_context(_scratch()))
        self._url = f"http://127.0.0.1:{_free_port(PORT, 0)}"

    def run(self, ends_by_itself: bool) -> int:
        print("flapd on one simulated node: an InfiniBand and a RoCE port, 400 Gb/s each")
        truth = self._stack.enter_context(self._fabric())
        self._stack.enter_context(self._agent())
        self._print_ports()
        self._print_where_to_look()
        told = self._follow_flaps(truth)
        all_found = self._print_balance(truth, told)
        if not ends_by_itself:
            print("The agent runs on; Ctrl-C ends it.")
            threading.Event().wait()
        return 0 if all_found else 1

    @contextmanager
    def _fabric(self) -> Iterator[Truth]:
        """The simulated /sys, by FUSE; plain files where that is not to be had."""
        spec_file, truth_file = self._directory / "spec.json", self._directory / "truth.json"
        spec = two_ports(FLAPS["mlx5_0/1"], FLAPS["mlx5_1/1"])
        spec_file.write_bytes(msgspec.json.encode(spec))
        command = [sys.executable, "-m", "simulators.fabric", "--until-eof"]
        command += ["--spec", str(spec_file), "--mount", str(self._directory / "sys")]
        command += ["--truth", str(truth_file), "--origin-in", str(BEGINS_AFTER_SECONDS)]
        missing = fuse_missing()
        if missing is not None:
            print(f"Simulating with plain files, since there is no FUSE: {missing}.")
            if "package" in missing:
                print("`make system-packages` (needs root) would bring it.")
            command.append("--plain")
        log = self._stack.enter_context((self._directory / "fabric.log").open("w+b"))
        with _child(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log) as child:
            assert child.stdout is not None
            assert child.stdin is not None
            if not child.stdout.readline().startswith(b"ready "):
                log.seek(0)
                raise SimulatorError(f"no simulated fabric: {log.read().decode()}")
            yield msgspec.json.decode(truth_file.read_bytes(), type=Truth)
            child.stdin.close()

    @contextmanager
    def _agent(self) -> Iterator[None]:
        """The real one, as a user would start it."""
        with (self._directory / "agent.log").open("wb") as log:
            self._configure()
            with self._start(log) as agent:
                if self._is_ready(agent):
                    yield
                    return
            self._url = f"http://127.0.0.1:{_free_port(0)}"  # somebody was faster
            self._configure()
            with self._start(log) as agent:
                if not self._is_ready(agent):
                    told = (self._directory / "agent.log").read_text()
                    raise SimulatorError(f"the agent did not get ready; its log:\n{told}")
                yield

    def _configure(self) -> None:
        directory = self._directory
        (directory / "flapd.toml").write_text(
            f'http.listen = "{self._url.removeprefix("http://")}"\n'
            "[paths]\n"
            f'sysfs = "{directory}/sys"\nstate = "{directory}/state"\n'
            f'ring = "{directory}/ring"\nsocket = "{directory}/flapd.sock"\n'
        )

    def _start(self, log: BinaryIO) -> AbstractContextManager["subprocess.Popen[bytes]"]:
        command = [sys.executable, "-m", "flapd", "run"]
        command += ["--config", str(self._directory / "flapd.toml")]
        return _child(command, stdin=subprocess.DEVNULL, stderr=log)

    def _is_ready(self, agent: "subprocess.Popen[bytes]") -> bool:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while time.monotonic() < deadline and agent.poll() is None:
            try:
                urllib.request.urlopen(f"{self._url}/readyz", timeout=5).close()
            except OSError:
                time.sleep(LOOK_EVERY_SECONDS)
            else:
                return agent.poll() is None
        return False

    def _get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/api/v1{path}", timeout=5) as answer:
            return json.load(answer)

    def _print_ports(self) -> None:
        for port in self._get("/ports")["items"]:
            witness = port["witness"]["name"]
            print(
                f"  {port['port']}  {port['link_layer']:<10}  {port['state']}  "
                f"{port['rate_gbps']:g} Gb/s  {port['netdev']}  every down counted by {witness}"
            )

    def _print_where_to_look(self) -> None:
        config = f"--config {self._directory}/flapd.toml"
        print("Look for yourself, in another terminal:")
        print(f"  .venv/bin/flapd flaps {config}")
        print(f"  .venv/bin/flapd ports {config}")
        print(f"  curl -s '{self._url}/api/v1/flaps?since=1h'")
        print(f"  curl -s {self._url}/metrics | grep flapd_link")
        print()

    def _follow_flaps(self, truth: Truth) -> dict[str, dict[str, Any]]:
        """Prints what becomes known of each flap as it comes, until the schedule is over."""
        ends_ns = truth.outages[-1].up_monotonic_ns + round(SETTLE_SECONDS * 1e9)
        told: dict[str, dict[str, Any]] = {}
        printed: set[str] = set()
        while time.monotonic_ns() < ends_ns:
            for flap in reversed(self._get("/flaps")["items"]):
                told[flap["id"]] = flap
                # A revision that only settles the count says the same.
                if sentence(flap) not in printed:
                    printed.add(sentence(flap))
                    print(sentence(flap), flush=True)
            time.sleep(LOOK_EVERY_SECONDS)
        return told

    def _print_balance(self, truth: Truth, told: dict[str, dict[str, Any]]) -> bool:
        recorded = sum(int(flap["count"]) for flap in told.values())
        print()
        print(f"The simulation took the links down {len(truth.outages)} times; ", end="")
        print(f"flapd recorded {recorded}.")
        return recorded == len(truth.outages)


def sentence(flap: dict[str, Any]) -> str:
    """What one revision of a flap says, for somebody who watches."""
    edge = flap["up"] or flap["down"]
    where = f"{edge['latest'][11:23]} UTC  {flap['port']}"
    if flap["status"] == "open":
        return f"{where}  is down"
    seconds = flap["down_seconds"]
    length = f"down for {seconds['min']:.2f} to {seconds['max']:.2f} s"
    if flap["seen"] != "observed":
        return f"{where}  went down and came back between two readings, {length}"
    return f"{where}  is up again, {length}"


@contextmanager
def _child(command: list[str], **streams: Any) -> Iterator["subprocess.Popen[bytes]"]:
    """A process that ends with the demo, in whatever way that ends."""
    child = subprocess.Popen(
        command,
        cwd=ROOT,
        start_new_session=True,
        preexec_fn=_end_with_parent,  # noqa: PLW1509 - the demo has one thread
        **streams,
    )
    try:
        yield child
    finally:
        child.terminate()
        child.wait()


def _end_with_parent() -> None:
    """prctl(PR_SET_PDEATHSIG, SIGTERM): the kernel ends us when the demo is killed."""
    ctypes.CDLL(None).prctl(1, signal.SIGTERM)


@contextmanager
def _scratch() -> Iterator[str]:
    """In memory where there is such a place, else in the usual one."""
    memory = Path("/dev/shm")
    base = str(memory) if os.access(memory, os.W_OK) else None
    directory = tempfile.mkdtemp(prefix="flapd-demo-", dir=base)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _free_port(*wanted: int) -> int:
    """The first of these that is free; 0 is any."""
    for port in wanted:
        with socket.socket() as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind(("127.0.0.1", port))
            except OSError:
                continue
            return int(trial.getsockname()[1])
    raise SimulatorError("no TCP port is free on 127.0.0.1")


if __name__ == "__main__":
    sys.exit(main())
