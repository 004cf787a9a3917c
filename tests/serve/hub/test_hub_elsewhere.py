"""Whatever an agent is asked, a hub answers or says where that is answered."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from flapd.serve.access import Gate
from flapd.serve.routes import build_app
from flapd.serve.settings import HttpSettings
from tests.serve.hub.asking import asking
from tests.serve.hub.fake_hub import FakeHub, beat
from tests.serve.parts import FakeAgent
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage

MODEL = "?params=70e9&tokens=4194304&gpus=1024&peak=989e12&mfu=0.4"
ANSWERED = {
    "/": "",
    "/api/v1/budget": f"{MODEL}&since=2023-11-14T00:00:00Z",
    "/api/v1/cost": "?down=2&gpus=8",
    "/api/v1/faults": "?node=node17",
    "/api/v1/faults/{id}": "",
    "/api/v1/flaps": "?node=node17",
    "/api/v1/flaps/{id}": "",
    "/api/v1/incidents": "?node=node17",
    "/api/v1/incidents/{id}": "",
    "/api/v1/jobs": "?node=node17",
    "/api/v1/openapi.json": "",
    "/api/v1/ports": "?node=node17",
    "/api/v1/stalls": "?node=node17",
    "/api/v1/stalls/{id}": "",
    "/api/v1/stream": "",
    "/api/v1/summary": "",
    "/flaps": "?node=node17",
    "/flaps/{id}": "",
    "/healthz": "",
    "/incidents": "?node=node17",
    "/incidents/{id}": "",
    "/metrics": "",
    "/page/{file}": "",
    "/readyz": "",
    "/timeline": "?since=1h",
}
"""Routes of an agent that a hub has, and a question that each answers."""
ELSEWHERE = {
    "/api/v1/maintenance": "run `flapd maintenance` there",
    "/api/v1/ports/{device}/{number}": "/api/v1/nodes/NODE/ports/mlx5_0/1",
    "/api/v1/ports/{device}/{number}/samples": "http://NODE:19315/api/v1/ports/mlx5_0/1/samples",
    "/api/v1/recording": "run `flapd record` there",
    "/api/v1/repaired": "run `flapd repaired` there",
    "/api/v1/status": "/api/v1/fleet",
    "/ports/{device}/{number}": "see /nodes",
}
"""Those that it has not, and what it says of where they are answered."""
IDS = {"flaps": "a", "faults": "fault-1", "stalls": "stall-1", "incidents": "incident-1"}


class Asked(NamedTuple):
    method: str
    path: str


def agent_routes(directory: Path) -> list[Asked]:
    """On its socket, where there are most."""
    (directory / "agent").mkdir()
    agent = FakeAgent(directory / "agent")
    with ThreadPoolExecutor(1) as executor:
        gate = Gate(HttpSettings(), local=True)
        routes = build_app(agent, executor, gate, "errors", local=True).router.routes()
        return [Asked(one.method, one.resource.canonical) for one in routes if one.resource]


def url_of(path: str) -> str:
    kind = path.split("/")[-2] if path.endswith("{id}") else ""
    names = {"id": IDS.get(kind, ""), "device": "mlx5_0", "number": "1", "file": "page.css"}
    return path.format_map(names)


@pytest.fixture
def told(hub: FakeHub) -> FakeHub:
    hub.hears(beat("node17"))
    hub.happens(outage("a"), job(), fault(), stall(), incident(nodes=("node17",)))
    return hub


async def test_a_hub_answers_what_an_agent_does_or_says_where_it_is_answered(
    told: FakeHub, tmp_path: Path
) -> None:
    asked = agent_routes(tmp_path)
    assert {one.path for one in asked} == ANSWERED.keys() | ELSEWHERE.keys()

    async with asking(told) as session:
        for method, path in asked:
            url = url_of(path) + ANSWERED.get(path, "")
            async with session.request(method, url) as answer:
                if path in ANSWERED:
                    assert answer.status == 200, (method, url, await answer.text())
                else:
                    assert answer.status == 404, (method, url)
                    if method != "HEAD":
                        error = (await answer.json())["error"]
                        assert (error["code"], error["parameter"]) == ("not_found", None), url
                        assert ELSEWHERE[path] in error["message"], url


async def test_samples_of_a_node_are_at_the_agent_of_that_node(told: FakeHub) -> None:
    async with asking(told) as session:
        answer = await session.get("/api/v1/nodes/node17/ports/mlx5_0/1/samples?since=60s")
        error = (await answer.json())["error"]

    assert answer.status == 404
    assert "http://node17:19315/api/v1/ports/mlx5_0/1/samples" in error["message"]


async def test_a_hub_does_not_say_that_no_samples_of_an_outage_are_kept(told: FakeHub) -> None:
    async def answered(path: str) -> Any:
        async with asking(told) as session, session.get(path) as answer:
            assert answer.status == 200
            return await answer.text() if path.startswith("/flaps") else await answer.json()

    one, listed = await answered("/api/v1/flaps/a"), await answered("/api/v1/flaps")
    page = await answered("/flaps/a")

    assert one["black_box"] is one["black_box_data"] is None
    assert [item["black_box"] for item in listed["items"]] == [None]
    assert "http://node17:19315/flaps/a" in page
