"""What an incident cost: measured where traffic shows it, else by the model, and never more."""

import math

import pytest
from msgspec.structs import replace

from flapd.core.cost.settings import CostSettings, JobSettings
from flapd.core.incident.incidents import incidents_of
from flapd.model.duration import Duration
from flapd.model.given import exactly
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from tests.core.incident.parts import (
    PORTS,
    evidence,
    fault,
    job,
    ns,
    outage,
    policy,
    stall,
    timeout,
    transport_error,
)
from tests.core.incident.sets import Item


def only(*items: Item, **known: object) -> Incident:
    (found,) = incidents_of(evidence(*items, **known))
    return found


def test_a_stall_costs_what_was_measured_times_all_gpus_of_the_job() -> None:
    found = only(job(), outage(7200, 2), stall(7200.1, 4.3))

    assert found.lost_seconds is not None
    assert found.gpu_seconds is not None
    assert found.lost_seconds.likely == pytest.approx(4.3)
    assert found.gpu_seconds.likely == pytest.approx(4.3 * 1024)
    assert found.cost is not None
    assert found.cost.likely == pytest.approx(4.3 * 1024 / 3600 * 2.5)
    assert found.assumed_share == 0


def test_the_pause_of_an_ordinary_step_is_not_lost() -> None:
    found = only(job(), stall(100, 30, expected_seconds=1.6, stall_class="remote"))

    assert found.lost_seconds is not None
    assert found.lost_seconds.likely == pytest.approx(28.4)


def test_traffic_that_was_cut_off_may_have_been_about_to_pause() -> None:
    found = only(job(shortest_stall_seconds=1.8), outage(7200, 2), stall(7200.1, 4.3))

    assert found.lost_seconds is not None
    assert found.lost_seconds.low == pytest.approx(4.3 - 1.2 - 0.2)


def test_a_death_costs_the_wait_the_restart_and_the_work_to_do_again() -> None:
    found = only(job(), outage(5000, 60), transport_error(5030.9))

    assert found.parts is not None
    assert found.parts.detect == pytest.approx(30.9)
    assert (found.parts.propagation, found.parts.restart, found.parts.rework) == (15, 300, 900)
    assert found.lost_seconds is not None
    assert found.lost_seconds.likely == pytest.approx(1245.9)
    assert found.assumed_share == pytest.approx(1215 / 1245.9)


def test_a_restart_that_traffic_shows_is_measured() -> None:
    found = only(job(), outage(5000, 60), stall(5000.1, 400), transport_error(5030.9))

    assert found.parts is not None
    assert found.parts.propagation + found.parts.restart == pytest.approx(5400.1 - 5030.9)
    assert found.assumed_share == pytest.approx(900 / (900 + 400.0))


def test_a_job_that_was_over_before_its_traffic_came_back_died() -> None:
    over = job(until_unix_ns=ns(5114))

    found = only(over, outage(5000, 60), stall(5000.1, 113.9))

    assert (found.verdict, found.regime) == ("caused", "transport_abort")
    assert found.parts is not None
    assert found.parts.detect == pytest.approx(113.9)
    assert found.parts.rework == 900


def test_where_errors_are_not_handed_on_the_watchdog_ended_the_job() -> None:
    silent = job(policy=policy(ib_timeout=18, coordinated=exactly(False, "version")))

    found = only(
        silent,
        outage(5000, 60),
        transport_error(5007.6),
        timeout(5600, ran=600, primary=False),
    )

    assert found.regime == "watchdog"
    assert found.parts is not None
    assert found.parts.detect == 600


def test_a_port_that_counted_retries_tells_of_no_death() -> None:
    found = only(
        job(), outage(5000, 2), stall(5000.1, 4.3), fault("counter", 5003, hca="mlx5_0", port=1)
    )

    assert found.regime == "absorbed"
    assert found.lost_seconds is not None
    assert found.lost_seconds.high < 5


def test_overlapping_outages_are_counted_once() -> None:
    blind = job(stalls_seen_since_unix_ns=None)

    alone = only(blind, outage(100, 8))
    both = only(blind, outage(100, 6, 0), outage(102, 6, 1))

    assert both.lost_seconds == alone.lost_seconds
    assert both.gpu_seconds is not None
    shares = both.flap_gpu_seconds.values()
    assert math.fsum(one.likely for one in shares) == pytest.approx(both.gpu_seconds.likely)
    assert all(one.low == 0 for one in shares)


@pytest.mark.parametrize("kind", ["elastic", "inference"])
def test_others_than_training_jobs_lose_the_gpus_behind_the_port_only(kind: str) -> None:
    found = only(job(kind=kind), outage(7200, 2), stall(7200.1, 4.3))

    assert found.affected_gpus == 8
    assert found.world_size == 1024


def test_where_nobody_knows_how_many_gpus_there_are_nothing_is_claimed() -> None:
    found = only(outage(5000, 60), transport_error(5030.9, job=None))

    assert found.lost_seconds is not None
    assert (found.gpu_seconds, found.cost, found.flap_gpu_seconds) == (None, None, {})


def test_settings_stand_where_nothing_is_found_out() -> None:
    found = only(
        job(world_size=None),
        outage(5000, 60),
        transport_error(5030.9),
        job=JobSettings(world_size=512, restart=Duration(100 * SECOND_NS)),
        cost=CostSettings(price_per_gpu_hour=4.0, currency="EUR"),
    )

    assert (found.world_size, found.currency) == (512, "EUR")
    assert found.parts is not None
    assert found.parts.restart == 100
    assert found.cost is not None
    assert found.gpu_seconds is not None
    assert found.cost.likely == pytest.approx(found.gpu_seconds.likely / 3600 * 4)


def test_a_transport_without_a_timer_waits_for_the_watchdog() -> None:
    for_ever = job(policy=policy(ib_timeout=0))

    found = only(for_ever, outage(9395, 2), timeout(10000))

    assert (found.verdict, found.regime) == ("caused", "watchdog")


def test_a_job_on_ethernet_may_give_up_early() -> None:
    ethernet = {key: replace(port, link_layer="Ethernet") for key, port in PORTS.items()}

    early = only(job(), outage(5000, 60), transport_error(5017), ports=ethernet)
    by_itself = incidents_of(evidence(job(), outage(5000, 60), transport_error(5017)))

    assert early.verdict == "caused"
    assert [one.verdict for one in by_itself if one.symptoms] == ["elsewhere"]
