"""The hub without a server: what a configuration that is read again changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from flapd.config import Config
from flapd.fleet.settings import FleetSettings, HubSettings
from flapd.hub import Hub
from flapd.model.consuming import Position
from flapd.model.incident import Incident
from flapd.serve.settings import HttpSettings
from flapd.sources.settings import PathsSettings
from tests.system.harness import until

NOBODY = "nats://127.0.0.1:9"


@pytest.fixture
def topology(tmp_path: Path) -> Path:
    file = tmp_path / "topology.csv"
    file.write_text("node1,mlx5_0,1,leaf1,7\n")
    return file


@pytest.fixture
def config(tmp_path: Path, topology: Path) -> Config:
    return replace(
        Config(),
        paths=PathsSettings(state=str(tmp_path / "state")),
        fleet=FleetSettings((NOBODY,)),
        hub=HubSettings(topology=str(topology)),
    )


@pytest.fixture
def hub(config: Config, tmp_path: Path) -> Iterator[Hub]:
    found = Hub(config, tmp_path / "hub.toml")
    found.start()
    yield found
    found.stop()
    found.history.close()


def switch_of(hub: Hub) -> str:
    return str(hub.peer_of("node1", "mlx5_0/1", None))


def waiting(hub: Hub) -> list[str]:
    """Sections that are not in force before the next start."""
    return list(hub.health.restart_needed)


def test_a_changed_topology_is_in_force_once_it_is_read_again(
    hub: Hub, config: Config, topology: Path
) -> None:
    topology.write_text("node1,mlx5_0,1,leaf2,9\n")
    before = switch_of(hub)

    hub.reload(lambda: config)

    assert (before, switch_of(hub)) == ("leaf1 port 7", "leaf2 port 9")
    assert (hub.health.config_reloaded_ok, waiting(hub)) == (True, [])


def test_a_topology_of_another_name_needs_no_restart_and_all_else_does(
    hub: Hub, config: Config, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    other.write_text("node1,mlx5_0,1,leaf3,1\n")

    hub.reload(lambda: replace(config, hub=HubSettings(topology=str(other))))
    assert waiting(hub) == []
    hub.reload(lambda: replace(config, hub=HubSettings(topology="", max_drains=1)))
    assert waiting(hub) == ["hub"]
    hub.reload(lambda: replace(config, http=HttpSettings(listen="")))
    assert waiting(hub) == ["http"]

    assert switch_of(hub) == "leaf1 port 7"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("node1,mlx5_0\n", "topology line 1"),
        (None, "cannot be read: No such file"),
    ],
)
def test_a_topology_that_is_wrong_is_told_in_a_sentence_and_the_one_before_stays(
    hub: Hub, config: Config, topology: Path, body: str | None, said: str
) -> None:
    if body is None:
        topology.unlink()
    else:
        topology.write_text(body)

    with capture_logs() as logs:
        hub.reload(lambda: config)

    (fault,) = [entry["fault"] for entry in logs if entry["event"] == "configuration_refused"]
    assert said in fault
    assert str(topology) in fault
    assert not hub.health.config_reloaded_ok
    assert switch_of(hub) == "leaf1 port 7"


def test_a_hub_that_cannot_judge_is_not_ready_and_says_why(hub: Hub) -> None:
    def fail(now_ns: int) -> list[Incident]:
        raise ZeroDivisionError(now_ns)

    hub._fleet_view.look = fail  # type: ignore[method-assign]
    hub._pump.take([], Position("2026", 1, 1), is_end=True).result(20.0)

    until(lambda: any("a fault of flapd" in why for why in hub.not_ready()), "the reason")
    assert not hub.failed
