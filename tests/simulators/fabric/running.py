"""A simulated fabric that runs as a process."""

import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from simulators.fabric.truth import Truth

REPOSITORY = Path(__file__).parents[3]


@dataclass
class Running:
    process: subprocess.Popen[str]
    root: Path
    truth: Truth

    def end(self) -> int:
        """Its exit code, after SIGTERM."""
        self.process.terminate()
        return self.process.wait(timeout=20)


Start = Callable[..., Running]
