"""Whatever a client asks of a hub, the answer is the one that its OpenAPI document describes."""

from collections.abc import Iterator

import pytest
from schemathesis.generation import GenerationMode

from flapd.serve.hub.routes import hub_app
from flapd.serve.settings import Prices
from tests.serve.hub.fake_hub import FakeHub, beat
from tests.serve.test_contract import ENDLESS_LOSS, ask_anything, on_tcp
from tests.store.jobs import fault, incident, job, stall
from tests.store.outages import outage

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    flaps = outage("f1"), outage("f2", up=None)
    hub = FakeHub(tmp_path_factory.mktemp("hub"), flaps)
    hub.happens(job(), fault(), stall(), incident(nodes=("n",)), ENDLESS_LOSS)
    hub.hears(beat("node1"))
    hub.hears(beat("node2"), ago_seconds=100)
    with on_tcp(hub_app(hub, 1, Prices())) as found:
        yield found
    hub.close()


@pytest.mark.parametrize("mode", list(GenerationMode))
def test_any_question_is_answered_as_described(url: str, mode: GenerationMode) -> None:
    ask_anything(url, mode)
