"""Service: the real flapd as one of the demo's processes, as a user would start it."""

import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from simulators.demo.child import ROOT, child, free_port
from simulators.errors import SimulatorError

READY_WITHIN_SECONDS = 30.0
LOOK_EVERY_SECONDS = 0.1


class Service:
    """An agent or a hub, with all it keeps in one directory."""

    def __init__(self, directory: Path, command: str, port: int) -> None:
        self.directory = directory
        self.config = directory / "flapd.toml"
        self._command = command
        self._url = f"http://127.0.0.1:{port}"

    @property
    def url(self) -> str:
        return self._url

    def configuration(self) -> str:
        """All of it but where to listen, which comes before."""
        raise NotImplementedError

    @contextmanager
    def running(self) -> Iterator[None]:
        """Ready; on another port where somebody was faster."""
        log_file = self.directory / "log"
        for port in (None, free_port(0)):
            self._url = self._url if port is None else f"http://127.0.0.1:{port}"
            self._configure()
            command = [sys.executable, "-m", "flapd", self._command, "--config", str(self.config)]
            with (
                log_file.open("wb") as log,
                child(command, stdin=subprocess.DEVNULL, stderr=log) as process,
            ):
                if self._is_ready(process):
                    yield
                    return
        told = log_file.read_text()
        raise SimulatorError(f"flapd {self._command} did not get ready; its log:\n{told}")

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"{self._url}/api/v1{path}", timeout=5) as answer:
            return json.load(answer)

    def flapd(self, *arguments: str) -> str:
        """What a command prints on the terminal of who asks this one."""
        ended = subprocess.run(
            [sys.executable, "-m", "flapd", *arguments, "--url", self._url],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        return ended.stdout + ended.stderr

    def _configure(self) -> None:
        self.config.write_text(
            f'http.listen = "{self._url.removeprefix("http://")}"\n'
            "http.open = true  # this machine only, and nothing is secret\n"
            f"{self.configuration()}"
        )

    def _is_ready(self, process: "subprocess.Popen[bytes]") -> bool:
        deadline = time.monotonic() + READY_WITHIN_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            try:
                urllib.request.urlopen(f"{self._url}/readyz", timeout=5).close()
            except OSError:
                time.sleep(LOOK_EVERY_SECONDS)
            else:
                return process.poll() is None
        return False
