"""The package for Debian 12 is built once for all tests of it."""

import pytest

from tests.deploy.packages.built import Package, build


@pytest.fixture(scope="session")
def debian(tmp_path_factory: pytest.TempPathFactory) -> Package:
    return build("debian-12", "amd64", tmp_path_factory.mktemp("debian-12"))
