"""The price of a flap over HTTP: the same as `flapd cost --json`, from the same configuration."""

import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from flapd.cli.main import main
from flapd.core.cost.calibration import Retry
from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.model.given import Given
from flapd.serve.access import Gate
from flapd.serve.cost_api import CostApi
from flapd.serve.routes import add_routes, empty_app
from flapd.serve.settings import HttpSettings

PATH = "/api/v1/cost"


def app(
    job: JobSettings = JobSettings(),  # noqa: B008 - frozen
    measured: tuple[Retry, ...] = (),
) -> web.Application:
    found = empty_app()
    gate = Gate(HttpSettings(), local=False)
    api = CostApi(job, CostSettings(currency="EUR"), lambda: measured)
    add_routes(found, gate, [*api.routes()])
    return found


async def told(
    query: str,
    job: JobSettings = JobSettings(),  # noqa: B008 - frozen
    measured: tuple[Retry, ...] = (),
) -> Any:
    async with (
        TestClient(TestServer(app(job, measured))) as client,
        client.get(f"{PATH}?{query}") as answer,
    ):
        assert answer.status == 200, await answer.text()
        return await answer.json()


async def test_a_price_is_told_with_each_value_on_its_way() -> None:
    found = await told("gpus=1024&down=2&ib_timeout=20&every=1h")

    assert found["regime"] == "absorbed"
    assert found["resume_seconds"] > 2
    assert found["cost"]["currency"] == "EUR"
    assert found["per_day"]["flaps"] == 24
    assert found["inputs"]["gpus"] == {"value": 1024, "low": 1024, "high": 1024, "source": "option"}


async def test_what_is_configured_holds_where_the_question_says_nothing() -> None:
    job = JobSettings(world_size=512, ib_timeout=22)

    inputs = (await told("down=2", job))["inputs"]

    assert (inputs["gpus"]["value"], inputs["gpus"]["source"]) == (512, "configuration")
    assert inputs["ib_timeout"]["value"] == 22


async def test_what_has_no_end_is_null() -> None:
    found = await told("gpus=8&down=2&hang=true&error_handling=0")

    assert (found["lost_seconds"], found["inputs"]["watchdog_seconds"]["value"]) == (None, None)


async def test_it_is_what_the_command_tells(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "flapd.toml").write_text('cost.currency = "EUR"')
    options = {
        "gpus": "64",
        "down": "60",
        "every": "2h",
        "usable-after": "1.5",
        "retry-cnt": "3",
        "schedule": "adaptive",
        "budget-factor": "1.1",
        "watchdog": "15m",
        "checkpoint-interval": "600",
        "checkpoint-cost": "12",
        "price": "3.5",
        "preset": "manual",
        "nccl": "2.27.5",
        "launcher": "torchrun",
    }
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    config = ["--config", str(tmp_path / "flapd.toml")]
    assert main(["cost", *config, *words, "--first-try-counts", "--json"]) == 0

    query = "&".join(f"{name.replace('-', '_')}={value}" for name, value in options.items())
    found = await told(f"{query}&first_try_counts=true")

    assert found == json.loads(capsys.readouterr().out)


async def test_what_this_node_measured_of_its_timers_is_in_force_and_told() -> None:
    factor = Given(2.4, 2.35, 2.45, "calibrated")
    retry = Retry(20, 0, factor, ("f1", "f2", "f3"), contradicted=1)

    found = await told("gpus=1024&down=2&ib_timeout=20", measured=(retry,))
    said = await told("gpus=1024&down=2&ib_timeout=20&budget_factor=1", measured=(retry,))
    other = await told("gpus=1024&down=2&ib_timeout=18", measured=(retry,))

    assert found["inputs"]["budget_factor"]["source"] == "calibrated"
    assert found["resume_seconds"] == pytest.approx(2.4 * 4.294967296)
    assert found["calibrations"][0]["flaps"] == ["f1", "f2", "f3"]
    assert found["calibrations"][0]["contradicted"] == 1
    assert said["resume_seconds"] == pytest.approx(4.294967296)
    assert other["inputs"]["budget_factor"]["source"] == "default"
    assert (await told("gpus=8&down=2"))["calibrations"] == []
