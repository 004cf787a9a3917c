"""The agent of a node without any port: what is asked of it, and what a reload changes."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from flapd import node
from flapd.config import Config, ConfigError, Fault
from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS
from flapd.node import Node
from flapd.serve.errors import ApiError
from flapd.serve.settings import HttpSettings
from flapd.sources.settings import PathsSettings, SamplingSettings, SourcesSettings


@pytest.fixture
def config(tmp_path: Path) -> Config:
    (tmp_path / "sys/class/infiniband").mkdir(parents=True)
    paths = PathsSettings(
        sysfs=str(tmp_path / "sys"),
        state=str(tmp_path / "state"),
        ring=str(tmp_path / "ring"),
        socket=str(tmp_path / "flapd.sock"),
    )
    return replace(Config(), paths=paths)


@pytest.fixture
def agent(config: Config, tmp_path: Path) -> Iterator[Node]:
    found = Node(config, tmp_path / "flapd.toml")
    found.start()
    yield found
    found.stop()
    found.history.close()


def test_planned_work_is_in_force_when_the_answer_comes_and_so_is_its_end(agent: Node) -> None:
    (planned,) = agent.maintain("a/1", 2**62, "new cables")

    assert (planned.key, planned.reason) == ("a/1", "new cables")
    assert agent.end_maintenance() == ()


def test_an_engine_in_a_disk_that_hangs_keeps_nobody_who_asks(
    agent: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node, "ENGINE_ANSWERS_WITHIN_SECONDS", 0.01)
    go_on = threading.Event()
    agent._pump.call(go_on.wait)
    asked = (
        lambda: agent.maintain(None, 2**62, "new cables"),
        agent.end_maintenance,
        lambda: agent.repaired("a/1", "cable"),
        lambda: agent.start_recording(60, 1 << 20),
        agent.stop_recording,
    )

    for ask in asked:
        with pytest.raises(ApiError, match="the engine does not answer") as refused:
            ask()
        assert refused.value.code == "unavailable"

    go_on.set()
    assert agent._pump.call(agent.snapshot).result(10).maintenance == ()
    assert agent.recording() is None


def test_a_section_that_needs_a_restart_is_told_until_it_is_as_it_was(
    agent: Node, config: Config
) -> None:
    with capture_logs() as logs:
        agent.reload(lambda: replace(config, http=HttpSettings(listen="")))
    assert [(log["event"], log["section"], log["log_level"]) for log in logs] == [
        ("section_needs_restart", "http", "warning")
    ]
    assert (agent.health.config_reloaded_ok, agent.health.restart_needed) == (True, ("http",))

    agent.reload(lambda: config)
    assert agent.health.restart_needed == ()


def test_a_section_that_is_reloaded_needs_no_restart(agent: Node, config: Config) -> None:
    slower = replace(SamplingSettings(), keep=replace(config.sampling.keep, ns=600 * SECOND_NS))

    agent.reload(lambda: replace(config, sampling=slower))

    assert agent.health.restart_needed == ()


def test_a_configuration_that_is_refused_leaves_what_was_told_of_the_last(
    agent: Node, config: Config
) -> None:
    def refuse() -> Config:
        raise ConfigError([Fault("log.level", '"loud"', "a level")])

    agent.reload(lambda: replace(config, http=HttpSettings(listen="")))
    with capture_logs() as logs:
        agent.reload(refuse)

    assert [log["event"] for log in logs] == ["configuration_refused"]
    assert (agent.health.config_reloaded_ok, agent.health.restart_needed) == (False, ("http",))


def test_a_source_that_must_work_and_cannot_fails_the_start(config: Config, tmp_path: Path) -> None:
    needed = replace(config, sources=SourcesSettings(rtnetlink="on"))

    with pytest.raises(
        FlapdError, match=r'^sources.rtnetlink is "on" and cannot work: paths.sysfs'
    ):
        Node(needed, tmp_path / "flapd.toml")
