"""What all tests share.

With FLAPD_TESTS_MAY_SKIP=no a skipped test fails the run; FLAPD_TESTS_EXAMPLES=few has properties
try few examples, for a second look with another Python.
"""

import os
import signal
from collections.abc import Generator

import pytest
from hypothesis import settings

settings.register_profile("flapd", deadline=None)
settings.register_profile("few", deadline=None, max_examples=15)
settings.load_profile(os.environ.get("FLAPD_TESTS_EXAMPLES", "flapd"))


def pytest_configure() -> None:
    """A script's background ignores SIGINT, and what is started here would inherit that."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail") and may_not_skip():
        report.outcome = "failed"
        report.longrepr = f"skipped, where nothing may be: {report.longreprtext}"
    return report


def may_not_skip() -> bool:
    return os.environ.get("FLAPD_TESTS_MAY_SKIP") == "no"
