"""Starts the simulated fabric as the process it is, and leaves nothing behind."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from simulators.fabric.spec import Spec
from simulators.fabric.truth import Truth
from tests.simulators.fabric.running import REPOSITORY, Running, Start


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    processes = []

    def begin(spec: Spec, *options: str) -> Running:
        scenario, truth, root = (tmp_path / name for name in ("spec.json", "truth.json", "sys"))
        scenario.write_bytes(msgspec.json.encode(spec))
        places = ["--spec", str(scenario), "--truth", str(truth), "--mount", str(root)]
        process = subprocess.Popen(
            [sys.executable, "-m", "simulators.fabric", *places, *options],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready {root}\n"
        return Running(process, root, msgspec.json.decode(truth.read_bytes(), type=Truth))

    yield begin
    for process in processes:
        process.terminate()
        process.wait(timeout=20)
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()
