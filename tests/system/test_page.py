"""The on-call page in a browser: every view, live, for everybody, and whatever logs say."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from playwright.sync_api import Browser, expect

from flapd.core.fabric.view import PortView, Snapshot
from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import two_ports
from tests.cli.here import Here, agent_at, recent
from tests.serve.parts import FakeAgent, port, view
from tests.store.jobs import cause, fault, incident, job, stall
from tests.system.browser import CHROMIUM, chromium, watched
from tests.system.harness import SimulatedNode, simulated_fabric, until

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(CHROMIUM is None, reason="no browser: there is no chromium here"),
]

HOSTILE = "<img src=x onerror='window.hacked=1'></code><script>window.hacked=1</script>\u202egnp"
MOST_BYTES = 250_000
VIEWS = ("/", "/incidents", "/incidents/i1", "/flaps", "/flaps/f1", "/ports/mlx5_0/1")
ORIGIN_IN_SECONDS = 10.0


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


def views() -> tuple[PortView, ...]:
    return (
        view(port(key="0x1/1")),
        view(port(key="0x2/1", device="mlx5_1", guid="0x2"), up=False, flapping=True, penalty=2400),
        view(port(key="0x3/1", device="mlx5_2", guid="0x3"), up=None, readable=False),
    )


def happened(agent: FakeAgent) -> None:
    """A flap that hurt a job, and what its log said of it, a minute ago."""
    flap = recent("f1", reason=HOSTILE)
    at_ns = flap.down.earliest_unix_ns
    told = fault(time_ns=at_ns, text=HOSTILE, host=HOSTILE, job=HOSTILE, rank=None, primary=True)
    still = replace(stall(), begin_ns=flap.down.earliest_ns, end_ns=None, job=HOSTILE)
    still = replace(still, wall_offset_ns=flap.down.wall_offset_ns)
    what = incident(
        "i1",
        job=HOSTILE,
        causes=(cause("f1"),),
        symptoms=("fault-1", "stall-1"),
        explanation=(f"The log says {HOSTILE}.",),
    )
    what = replace(what, begin_unix_ns=at_ns, end_unix_ns=None, open=True)
    agent.happens(flap, job(job=HOSTILE), told, still, what)
    agent.shown = Snapshot(ports=views(), is_scouted=True, wall_offset_ns=0)


@pytest.fixture
def url(tmp_path: Path) -> Iterator[str]:
    with agent_at(Here(tmp_path), open=True) as (agent, url):
        happened(agent)
        yield url


@pytest.mark.parametrize("path", VIEWS)
@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (1280, "dark"), (400, "dark")])
def test_every_view_is_whole_small_and_for_everybody(
    url: str, browser: Browser, path: str, width: int, scheme: Any
) -> None:
    size = {"width": width, "height": 900}
    with watched(browser, viewport=size, color_scheme=scheme) as seen:
        seen.page.goto(url + path)
        expect(seen.page.locator("body[data-streaming]")).to_be_attached()

        assert seen.serious() == []
        assert seen.complaints == []
        assert seen.hosts == {url.removeprefix("http://")}
        assert not seen.is_wider_than_its_window()
        assert 10_000 < seen.bytes() <= MOST_BYTES


@pytest.mark.parametrize("path", VIEWS)
def test_what_a_log_says_is_text_whatever_it_says(url: str, browser: Browser, path: str) -> None:
    with watched(browser) as seen:
        seen.page.goto(url + path)
        expect(seen.page.locator("body[data-streaming]")).to_be_attached()
        if path == "/incidents/i1":
            log = seen.page.locator("code.log").first
            expect(log).to_have_text(HOSTILE.replace("\u202e", "\ufffd"))

        assert seen.page.evaluate("window.hacked") is None
        assert seen.page.locator("img").count() == 0


def test_the_first_screen_says_what_is_wrong_what_happened_and_what_it_cost(
    url: str, browser: Browser
) -> None:
    with watched(browser) as seen:
        seen.page.goto(url)
        now = seen.page.locator("#now")
        expect(now.locator(".verdict")).to_have_text("4 things are wrong")
        expect(now).to_contain_text("mlx5_1/1 flapping: penalty 2400")
        expect(now).to_contain_text("mlx5_2/1 cannot be read: whether it is up is not known")
        incidents = seen.page.locator("#incidents")
        expect(incidents).to_contain_text("caused by mlx5_0/1 (98.0 %)")
        expect(incidents).to_contain_text("3.13 USD")
        expect(seen.page).to_have_title(re.compile("^4 wrong"))


def test_an_incident_has_its_evidence_the_sum_and_text_for_a_ticket(
    url: str, browser: Browser
) -> None:
    with watched(browser) as seen:
        seen.page.goto(f"{url}/incidents/i1")
        expect(seen.page.locator("#evidence")).to_contain_text("goes down, link")
        expect(seen.page.locator("#evidence")).to_contain_text("traffic stands still")
        price = seen.page.locator("#price")
        for part in ("+ standing still", "x GPUs that waited", "= GPU-seconds", "= USD"):
            expect(price).to_contain_text(part)
        expect(price).to_contain_text("NCCL_IB_TIMEOUT")
        ticket = seen.page.locator("#ticket").input_value()
        seen.page.get_by_role("button", name="Copy the text").click()
        expect(seen.page.get_by_role("button", name="Copied")).to_be_visible()

    assert "mlx5_0/1" in ticket
    assert "Switch:  not known" in ticket


def test_without_a_script_everything_is_told_but_the_picture(url: str, browser: Browser) -> None:
    with watched(browser, java_script_enabled=False) as seen:
        seen.page.goto(url)
        expect(seen.page.locator("#now .verdict")).to_have_text("4 things are wrong")
        expect(seen.page.locator("#flaps")).to_contain_text("mlx5_0/1")
        seen.page.get_by_role("link", name="all incidents").click()
        expect(seen.page.locator("#list")).to_contain_text("caused by")


def test_the_timeline_goes_from_a_day_to_a_second_by_keys_and_opens_what_is_chosen(
    url: str, browser: Browser
) -> None:
    with watched(browser) as seen:
        seen.page.goto(url)
        plot = seen.page.get_by_role("application")
        plot.focus()
        expect(seen.page.locator("#timeline[data-marks]")).to_be_attached()
        told = seen.page.locator("#timeline output")
        plot.press("ArrowDown")
        expect(told).to_contain_text("mlx5_0/1 down, link")
        for _ in range(20):
            plot.press("+")
        span = seen.page.locator("#timeline-span").inner_text()
        plot.press("Enter")
        expect(seen.page).to_have_url(re.compile("/flaps/f1$"))

    first, last = re.findall(r":(\d\d\.\d{3})", span)[:2]
    assert round((float(last) - float(first)) % 60, 2) == 1.0


def test_a_drag_over_the_timeline_zooms_in(url: str, browser: Browser) -> None:
    with watched(browser) as seen:
        seen.page.goto(url)
        canvas = seen.page.locator("#timeline canvas")
        span = seen.page.locator("#timeline-span")
        expect(seen.page.locator("#timeline[data-marks]")).to_be_attached()
        before = span.inner_text()
        box = canvas.bounding_box()
        assert box is not None
        seen.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 40)
        seen.page.mouse.down()
        seen.page.mouse.move(box["x"] + box["width"] / 2 + 100, box["y"] + 40)
        seen.page.mouse.up()
        expect(span).not_to_have_text(before)


def test_who_may_not_see_jobs_sees_the_fabric_and_which_key_decides(
    tmp_path: Path, browser: Browser
) -> None:
    token = tmp_path / "token"
    token.write_text("secret\n")
    token.chmod(0o600)
    with agent_at(Here(tmp_path), token_file=str(token)) as (agent, url):
        happened(agent)
        with watched(browser) as seen:
            seen.page.goto(url)
            expect(seen.page.locator(".notice")).to_contain_text("http.open")
            expect(seen.page.locator("#ports")).to_contain_text("mlx5_1/1")
            expect(seen.page.locator("body[data-streaming]")).to_be_attached()
            assert seen.page.locator("#incidents, #jobs").count() == 0
            assert seen.complaints == []
            shown = seen.page.content()
        credentials = {"username": "", "password": "secret"}
        with watched(browser, http_credentials=credentials) as seen:
            seen.page.goto(f"{url}/incidents")
            expect(seen.page.locator("#list")).to_contain_text("caused by")
            seen.page.goto(url)
            expect(seen.page.locator("#incidents")).to_contain_text("caused by")

    assert "caused" not in shown
    assert "/incidents/i1" not in shown


@pytest.fixture
def node(tmp_path: Path) -> Iterator[SimulatedNode]:
    node = SimulatedNode(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as free:
        listen = f"127.0.0.1:{free.getsockname()[1]}"
    text = node.config.read_text()
    node.config.write_text(text.replace('http.listen = ""', f'http.listen = "{listen}"'))
    yield node
    if node.agent is not None and node.agent.poll() is None:
        node.kill()


def url_of(node: SimulatedNode) -> str:
    found = re.search(r'http.listen = "(.+)"', node.config.read_text())
    assert found is not None
    return f"http://{found[1]}"


@pytest.mark.skipif(fuse_missing() is not None, reason=f"no simulated fabric: {fuse_missing()}")
def test_a_flap_appears_as_it_happens_and_the_page_is_back_after_the_agent_is(
    node: SimulatedNode, browser: Browser
) -> None:
    with simulated_fabric(node, two_ports((Flap(0.0, 1.0),), ()), ORIGIN_IN_SECONDS):
        node.start()
        until(node.is_ready, "readiness")
        (name, _) = (item["port"] for item in node.get("/api/v1/ports")["items"])
        with watched(browser) as seen:
            seen.page.goto(url_of(node))
            expect(seen.page.locator("#flaps")).to_contain_text("No outage is in the history")
            expect(seen.page.locator("body[data-streaming]")).to_be_attached()
            expect(seen.page.locator("#flaps tbody")).to_contain_text(name)

            node.kill()
            lost = seen.page.locator("#connection")
            expect(lost).to_contain_text("Connection to the agent lost")
            node.start()
            expect(lost).to_be_empty()
            expect(seen.page.locator("#flaps tbody tr")).to_have_count(1)

            seen.page.locator("#flaps tbody a").first.click()
            until(lambda: _has_charts(seen.page), "the black box")
            expect(seen.page.locator("#black-box")).to_contain_text("link_downed")
            seen.page.goto(f"{url_of(node)}/ports/{name}")
            expect(seen.page.locator("#ring .uplot").first).to_be_visible()
            assert seen.serious() == []


def _has_charts(page: Any) -> bool:
    page.reload()
    return bool(page.locator("#black-box .uplot").count())
