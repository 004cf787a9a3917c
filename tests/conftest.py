"""What all tests share: with FLAPD_TESTS_MAY_SKIP=no a skipped test fails the run."""

import os
from collections.abc import Generator

import pytest


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
