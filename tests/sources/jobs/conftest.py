from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.sources.jobs.fake_proc import FakeProc


@pytest.fixture
def fake(tmp_path: Path) -> Iterator[FakeProc]:
    before = psutil.PROCFS_PATH
    yield FakeProc(tmp_path / "proc")
    psutil.PROCFS_PATH = before
