"""The metrics of one snapshot, line by line, and what must hold for all of them."""

from collections.abc import Callable, Iterable
from pathlib import Path

from prometheus_client.core import Metric
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from flapd import __version__
from flapd.core.fabric.view import DownHistogram, LinkTotals, PortView, Snapshot
from flapd.model.times import SECOND_NS, Edge
from flapd.serve.agent import Health
from flapd.serve.metrics import Scrape, render
from flapd.sources.read_health import ReadHealth
from tests.serve.parts import FakeAgent, over_tcp, port, view

GOLDEN = Path(__file__).with_name("metrics.txt")
OPENMETRICS = "application/openmetrics-text; version=1.0.0"

DOWN = Edge(10 * SECOND_NS, 11 * SECOND_NS, 1_700_000_000 * SECOND_NS)


def infiniband() -> PortView:
    """A port that flaps, whose counter has come to its stop."""
    return view(
        values={
            "state": 1,
            "phys_state": 2,
            "rate_mbps": 400_000,
            "counters/link_downed": 255,
            "counters/symbol_error": 12,
            "counters/port_xmit_data": 99,
            "hw_counters/out_of_sequence": 2**53 - 1,
            "hw_counters/new_thing": 5,
            "hw_counters/lifespan": 12,
        },
        up=False,
        saturated=("counters/link_downed",),
        witness_status="saturated",
        down_since=DOWN,
        last_down=DOWN,
        last_down_ns=SECOND_NS // 2,
        totals=LinkTotals({"link": 7, "subnet": 1, "unknown": 0}, 6, 1, 300 * SECOND_NS),
        witness_resets=2,
        flapping=True,
        penalty=2500.5,
        downgraded=True,
        grace=True,
        maintenance=True,
    )


def ethernet() -> PortView:
    """A port of which little is known yet."""
    return view(
        port(
            key="0000:5e:00.0/1",
            device='rocep"1',
            link_layer="Ethernet",
            guid=None,
            driver=None,
            netdev=None,
        ),
        values={"net/carrier": 1, "net/carrier_down_count": 4, "net/carrier_up_count": 4},
        errors={},
        up=None,
        witness_status="unproven",
        readable=False,
        last_read_ns=None,
        watched=False,
    )


def scrape(*ports: PortView) -> Scrape:
    histogram = DownHistogram([1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], 700 * SECOND_NS)
    snapshot = Snapshot(
        ports=ports,
        down_histogram=histogram,
        stuck_readers={"mlx5_0": 35 * SECOND_NS},
        ports_expected=3,
        is_scouted=True,
    )
    errors = {("mlx5_0", "EIO"): 4, ("mlx5_0", "EPROTO"): 1}
    reads = ReadHealth(errors=errors, rings_missing={"mlx5_0": 3})
    reads.lateness.observe(0.003)
    reads.observe("mlx5_0", "fast", 0.0002)
    reads.observe("mlx5_0", "fast", 5)
    health = Health(1, 2, 3, reads=reads)
    return Scrape(snapshot, health, now_ns=100 * SECOND_NS, history_bytes=4096)


def test_a_snapshot_gives_these_lines() -> None:
    body, content_type = render(scrape(infiniband(), ethernet()), "")

    assert content_type.startswith("text/plain; version=0.0.4")
    assert body.decode().replace(__version__, "VERSION") == GOLDEN.read_text()


def test_openmetrics_tells_the_same_samples() -> None:
    shown = scrape(infiniband(), ethernet())
    text = render(shown, "")[0].decode()
    openmetrics, content_type = render(shown, OPENMETRICS)

    parse: Callable[[str], Iterable[Metric]] = parse_openmetrics
    families = list(parse(openmetrics.decode()))

    assert content_type.startswith("application/openmetrics-text")
    assert samples_of(families) == samples_of(parse_text(text))


def samples_of(families: Iterable[Metric]) -> set[object]:
    return {
        (sample.name, frozenset(sample.labels.items()), sample.value)
        for family in families
        for sample in family.samples
    }


def test_how_many_ports_are_found_is_not_told_before_it_is_known() -> None:
    assert b"flapd_ports_found" not in render(Scrape(Snapshot(), Health(), 0, 0), "")[0]


def test_each_source_is_up_that_tells_of_at_least_one_port() -> None:
    sources = {"k0": {"rtnetlink": "on", "verbs": "off"}, "k1": {"rtnetlink": "no netdev"}}
    views = [view(port(key=f"k{number}", device=f"mlx5_{number}")) for number in range(2)]

    body = render(Scrape(Snapshot(ports=tuple(views)), Health(sources=sources), 0, 0), "")[0]

    lines = [line for line in body.decode().splitlines() if line.startswith("flapd_source_up")]
    assert lines == [
        'flapd_source_up{source="sysfs"} 1.0',
        'flapd_source_up{source="rtnetlink"} 1.0',
        'flapd_source_up{source="verbs"} 0.0',
    ]


def test_without_ports_only_the_agent_is_told() -> None:
    body = render(Scrape(Snapshot(is_scouted=True), Health(config_reloaded_ok=False), 0, 0), "")[
        0
    ].decode()

    assert "flapd_ports_found 0.0" in body
    assert "flapd_config_last_reload_successful 0.0" in body
    assert 'device="' not in body


def test_a_replaced_card_gives_no_series_twice() -> None:
    gone = view(port(key="old/1"), present=False)

    body = render(scrape(gone, infiniband()), "")[0].decode()

    lines = [line.rpartition(" ")[0] for line in body.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))
    assert 'flapd_port_watched{device="mlx5_0",port="1"} 1.0' in body


def test_a_bond_has_one_series_with_the_downs_of_its_members() -> None:
    bond = view(port(members=("eth0", "eth1")))
    members = [
        view(
            port(key=f"{port().key}/{member}", member=member),
            totals=LinkTotals({"link": 2, "subnet": 0, "unknown": 0}, 2, 0, SECOND_NS),
        )
        for member in bond.port.members
    ]

    body = render(scrape(bond, *members), "")[0].decode()

    lines = [line.rpartition(" ")[0] for line in body.splitlines() if not line.startswith("#")]
    assert len(lines) == len(set(lines))
    assert 'flapd_link_downs_total{cause="link",device="mlx5_0",port="1"} 4.0' in body
    assert "flapd_ports_found 1.0" in body


def test_what_has_not_happened_yet_is_told_as_0_for_each_device_there_is() -> None:
    body = render(Scrape(Snapshot(ports=(view(),)), Health(), 0, 0), "")[0].decode()

    for tier in ("fast", "slow", "rare"):
        assert f'flapd_read_seconds_count{{device="mlx5_0",tier="{tier}"}} 0.0' in body
    assert 'flapd_read_errors_total{device="mlx5_0",reason="EIO"} 0.0' in body
    assert "flapd_sample_lateness_seconds_count 0.0" in body


async def test_the_format_is_the_one_asked_for(tmp_path: Path) -> None:
    async with (
        over_tcp(FakeAgent(tmp_path), tmp_path) as session,
        session.get("/metrics") as text,
        session.get("/metrics", headers={"Accept": OPENMETRICS}) as openmetrics,
    ):
        assert text.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
        assert openmetrics.content_type == "application/openmetrics-text"
        assert (await openmetrics.text()).endswith("# EOF\n")
