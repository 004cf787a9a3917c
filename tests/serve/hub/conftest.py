"""A hub for each test of what it answers."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serve.hub.fake_hub import FakeHub


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[FakeHub]:
    found = FakeHub(tmp_path)
    yield found
    found.close()
