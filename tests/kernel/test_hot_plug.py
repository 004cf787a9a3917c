"""Devices that come, go, get other names and lose their netdev while the agent watches."""

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from flapd.model.event import Outage
from tests.kernel.image import missing
from tests.kernel.told import Watched, assert_each_is_found

WAITS_FOR_EVER_SECONDS = 10.0
"""What is held, and not let go of, does not go at all."""

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.skipif(missing() is not None, reason=f"no virtual machine: {missing()}"),
]


@pytest.fixture(scope="module")
def told(watched: Watched) -> dict[str, Any]:
    scenario: dict[str, Any] = watched.scenario("hot_plug")
    return scenario


@pytest.fixture(scope="module")
def flaps(watched: Watched, told: dict[str, Any]) -> list[Outage]:
    """Those that ended by themselves."""
    outages = watched.outages_of_guid(told["guid"])
    return [outage for outage in outages if outage.cause == "link" and outage.status == "closed"]


@pytest.fixture(scope="module")
def gone(watched: Watched, told: dict[str, Any]) -> list[Outage]:
    outages = watched.outages_of_guid(told["guid"])
    return [outage for outage in outages if outage.cause in {"removed", "driver_reload"}]


@pytest.mark.parametrize(
    ("when", "port"),
    [
        ("added", "rxe3/1"),
        ("renamed", "mlx5_9/1"),
        ("added_again", "rxe4/1"),
        ("moved_back", "rxe4/1"),
    ],
)
def test_a_device_is_followed_under_the_name_it_has(
    watched: Watched, told: dict[str, Any], when: str, port: str
) -> None:
    (answer,) = told["answers"][when][watched.name]

    assert (answer["port"], answer["guid"], answer["netdev"]) == (port, told["guid"], "w0")
    assert answer["up"] is True


@pytest.mark.parametrize("when", ["deleted", "moved_away"])
def test_of_a_device_that_is_gone_nothing_is_claimed(
    watched: Watched, told: dict[str, Any], when: str
) -> None:
    (answer,) = told["answers"][when][watched.name]

    assert answer["up"] is None
    assert answer["readable"] is False


@pytest.mark.parametrize("when", ["deleted", "moved_away"])
def test_a_device_that_is_held_for_its_events_can_go_all_the_same(
    told: dict[str, Any], figure: Callable[[str], None], when: str
) -> None:
    """With sources.verbs = "on": rxe waits for whoever holds a context, and tells nobody."""
    seconds = told["gone_within_seconds"][when]

    figure(f"a device that is held, {when}: gone within {seconds:.1f} s")
    assert seconds < WAITS_FOR_EVER_SECONDS


def test_its_history_is_one_over_all_names(flaps: list[Outage], told: dict[str, Any]) -> None:
    assert_each_is_found(flaps, told["true"])
    assert [flap.port for flap in flaps] == ["rxe3/1", "mlx5_9/1", "rxe4/1", "rxe4/1"]


def test_between_its_flaps_it_is_told_when_it_was_gone(
    flaps: list[Outage], gone: list[Outage]
) -> None:
    """Not while it was only renamed; while it was deleted, and while its netdev was elsewhere."""
    renamed, deleted, moved = pairwise(flap.down.latest_ns for flap in flaps)

    assert [is_told_within(span, gone) for span in (renamed, deleted, moved)] == [False, True, True]


def is_told_within(span: tuple[int, int], outages: list[Outage]) -> bool:
    return any(span[0] < outage.down.latest_ns < span[1] for outage in outages)
