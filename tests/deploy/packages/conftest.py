"""The package for Debian 12 is built once for all tests of it."""

import pytest

from tests.deploy.packages.built import Package, debian_12


@pytest.fixture(scope="session")
def debian() -> Package:
    return debian_12()
