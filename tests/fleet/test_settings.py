"""What of a fleet is configured, and that a node without one carries nothing for it."""

import subprocess
import sys
from pathlib import Path

import pytest

from flapd.config import ConfigError, load_config
from flapd.fleet.settings import FleetSettings
from tests.fleet.nats_server import ROOT


def read(tmp_path: Path, text: str) -> FleetSettings:
    file = tmp_path / "flapd.toml"
    file.write_text(f"[fleet]\n{text}")
    return load_config(file, {}).fleet


def test_servers_are_urls(tmp_path: Path) -> None:
    found = read(tmp_path, 'servers = ["tls://nats1.example:4222", "nats://[fd00::1]:4222"]')

    assert found.servers == ("tls://nats1.example:4222", "nats://[fd00::1]:4222")
    assert found.cluster == "default"


@pytest.mark.parametrize(
    "servers", ['"tls://a"', '["nats1:4222"]', '["http://a"]', '["nats://user:secret@a:4222"]']
)
def test_what_is_no_server_is_refused_and_so_is_a_password_in_a_url(
    tmp_path: Path, servers: str
) -> None:
    with pytest.raises(ConfigError, match=r"fleet\.servers = .*NATS URLs without a user"):
        read(tmp_path, f"servers = {servers}")


@pytest.mark.parametrize("cluster", ["", "a.b", "*", "a b", "x" * 65])
def test_a_cluster_is_one_plain_token(tmp_path: Path, cluster: str) -> None:
    with pytest.raises(ConfigError, match=r"fleet\.cluster = .*letters, digits"):
        read(tmp_path, f'cluster = "{cluster}"')


def test_an_agent_without_a_fleet_imports_nothing_for_it() -> None:
    told = subprocess.run(
        [sys.executable, "-c", "import flapd.node, sys; print('nats' in sys.modules)"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert told.stdout.strip() == "False"
