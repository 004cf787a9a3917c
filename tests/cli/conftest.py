"""Fixtures of the commands' tests."""

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import structlog

from tests.cli.here import Here


@pytest.fixture(autouse=True)
def quiet_server() -> Iterator[None]:
    """It logs in this process, whose output is the command's here."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    yield
    structlog.reset_defaults()


@pytest.fixture
def here(tmp_path: Path) -> Here:
    return Here(tmp_path)


@pytest.fixture
def zone_of_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "EST5EDT,M3.2.0,M11.1.0")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()
