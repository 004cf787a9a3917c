"""The verdict of a health check: a no only for what this node has alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.cli.verdict import (
    BACK_WITHIN_SECONDS,
    LOOK_BACK_SECONDS,
    SAME_SECONDS,
    Facts,
    Flap,
    Limits,
    Port,
    judge,
)
from flapd.model.times import SECOND_NS

NOW_NS = 1_800_000_000 * SECOND_NS
LIMITS = Limits(max_flaps=3, window_ns=3600 * SECOND_NS)


def port(number: int, **changes: Any) -> Port:
    well = Port(
        name=f"mlx5_{number}/1",
        present=True,
        missing=False,
        up=True,
        flapping=False,
        maintenance=False,
        readable=True,
    )
    return well._replace(**changes)


def gone(number: int, **changes: Any) -> Port:
    return port(number, present=False, missing=True, up=None, readable=False, **changes)


def flap(number: int, seconds_ago: float, lasted: float | None = 1.0, **changes: Any) -> Flap:
    down_ns = NOW_NS - round(seconds_ago * SECOND_NS)
    end_ns = None if lasted is None else down_ns + round(lasted * SECOND_NS)
    return Flap(f"mlx5_{number}/1", down_ns, down_ns, end_ns, 1, counts=True)._replace(**changes)


def facts(ports: list[Port], flaps: list[Flap] | None = None, **changes: Any) -> Facts:
    return Facts(NOW_NS, ports, flaps or [])._replace(**changes)


FOUR = [port(number) for number in range(4)]
OWN = [flap(0, seconds_ago) for seconds_ago in (100, 400, 900, 1600)]


def test_a_node_without_flaps_is_healthy() -> None:
    assert judge(facts(FOUR, expected=4), LIMITS).health == "healthy"


@pytest.mark.parametrize("ports", [[], [port(0, present=False, up=False)]])
def test_of_a_node_where_nothing_was_ever_up_nothing_is_known(ports: list[Port]) -> None:
    verdict = judge(facts(ports, expected=0), LIMITS)

    assert verdict == ("unknown", "nothing is watched: no port was ever up here")
    assert judge(facts(ports, expected=2), LIMITS).health == "unhealthy"


def test_more_flaps_of_one_port_than_allowed_are_a_no() -> None:
    verdict = judge(facts(FOUR, OWN), LIMITS)

    assert verdict.health == "unhealthy"
    assert verdict.reason == "mlx5_0/1 flapped 4 times in 1 h"


def test_as_many_flaps_as_allowed_are_none() -> None:
    assert judge(facts(FOUR, OWN[:3]), LIMITS).health == "healthy"


def test_flaps_before_the_window_are_none_unless_they_reach_into_it() -> None:
    old = [flap(0, 3700 + 100 * number) for number in range(4)]
    long = [flap(0, 3700 + 100 * number, lasted=1000) for number in range(4)]

    assert judge(facts(FOUR, old), LIMITS).health == "healthy"
    assert judge(facts(FOUR, long), LIMITS).health == "unhealthy"


def test_flaps_of_several_ports_are_not_added_up() -> None:
    flaps = [flap(number, 100 + 300 * number) for number in range(4)]

    assert judge(facts(FOUR, flaps), LIMITS).health == "healthy"


def test_a_flapping_port_is_a_no() -> None:
    verdict = judge(facts([port(0, flapping=True), *FOUR[1:]], OWN[:2]), LIMITS)

    assert verdict == ("unhealthy", "mlx5_0/1 is flapping")


def test_a_flapping_port_of_which_no_flap_is_known_any_more_is_a_no() -> None:
    assert judge(facts([port(0, flapping=True), *FOUR[1:]]), LIMITS).health == "unhealthy"


def test_a_port_that_was_called_flapping_for_what_all_ports_shared_is_none() -> None:
    shared = [flap(number, ago + number) for number in range(4) for ago in (5000, 6000)]

    verdict = judge(facts([port(0, flapping=True), *FOUR[1:]], shared), LIMITS)

    assert verdict.health == "healthy"


def test_where_all_ports_are_flapping_it_is_not_the_node() -> None:
    ports = [port(number, flapping=True) for number in range(4)]

    verdict = judge(facts(ports), LIMITS)

    assert verdict.health == "healthy"
    assert "together" in verdict.reason


def test_where_each_port_flaps_by_itself_all_of_them_are_a_no() -> None:
    ports = [port(number, flapping=True) for number in range(2)]
    flaps = [flap(number, 300 * ago + 150 * number) for number in range(2) for ago in range(3)]

    verdict = judge(facts(ports, flaps), LIMITS)

    assert verdict == ("unhealthy", "mlx5_0/1 is flapping; mlx5_1/1 is flapping")


def test_a_burst_of_its_own_makes_a_port_flapping_and_a_single_down_does_not() -> None:
    ports = [port(0, flapping=True), *FOUR[1:]]

    assert judge(facts(ports, [flap(0, 90, downs=9)]), LIMITS).health == "unhealthy"
    assert judge(facts(ports, [flap(0, 90)]), LIMITS).health == "healthy"


def test_the_only_port_of_a_node_shares_nothing() -> None:
    assert judge(facts([port(0, flapping=True)]), LIMITS).health == "unhealthy"
    assert judge(facts([port(0)], OWN), LIMITS).health == "unhealthy"
    assert judge(facts([gone(0)], expected=1), LIMITS).health == "unhealthy"


def test_a_switch_that_goes_again_and_again_is_not_the_node() -> None:
    flaps = [flap(number, ago + number) for number in range(4) for ago in (100, 400, 900, 1600)]

    assert judge(facts(FOUR, flaps), LIMITS).health == "healthy"


def test_a_port_that_was_down_all_the_time_shares_in_nothing_alone() -> None:
    """Else the other port of two could flap for ever and never be told."""
    ports = [port(0), port(1, up=False)]
    flaps = [*OWN, flap(1, 50_000, lasted=None)]

    assert judge(facts(ports, flaps), LIMITS).health == "unhealthy"


def test_a_port_that_was_down_already_does_not_make_a_switch_the_nodes_fault() -> None:
    ports = [*FOUR[:3], port(3, up=False)]
    shared = [flap(number, ago + number) for number in range(3) for ago in (100, 400, 900, 1600)]

    assert judge(facts(ports, [*shared, flap(3, 50_000, lasted=None)]), LIMITS).health == "healthy"


def test_one_flap_of_a_neighbour_excuses_one_flap() -> None:
    flaps = [flap(0, 4 * number) for number in range(8)]

    verdict = judge(facts([port(0), port(1)], [*flaps, flap(1, 14)]), LIMITS)

    assert verdict == ("unhealthy", "mlx5_0/1 flapped 7 times in 1 h")


def test_a_switch_that_is_away_and_lets_one_port_go_again_and_again_is_not_the_node() -> None:
    flaps = [flap(0, 400 - 50 * number) for number in range(8)]

    verdict = judge(facts([port(0), port(1)], [*flaps, flap(1, 410, lasted=405)]), LIMITS)

    assert verdict.health == "healthy"


def test_what_nobody_counts_is_none() -> None:
    flaps = [one._replace(counts=False) for one in OWN]

    assert judge(facts(FOUR, flaps), LIMITS).health == "healthy"


def test_a_port_that_is_down_is_told_and_no_reason() -> None:
    """A switch takes one port of each of its nodes down; they must not all be drained."""
    verdict = judge(facts([port(0, up=False), *FOUR[1:]], [flap(0, 9000, lasted=None)]), LIMITS)

    assert verdict.health == "healthy"
    assert "mlx5_0/1" in verdict.reason


def test_a_missing_port_is_a_no() -> None:
    verdict = judge(facts([gone(0), *FOUR[1:]], expected=4), LIMITS)

    assert verdict == ("unhealthy", "1 of 4 expected ports missing: mlx5_0/1")


def test_ports_that_were_expected_and_never_seen_are_missing() -> None:
    verdict = judge(facts(FOUR, expected=8), LIMITS)

    assert verdict == ("unhealthy", "4 of 8 expected ports missing")


def test_a_port_that_went_is_not_missed_where_fewer_are_expected() -> None:
    assert judge(facts([gone(0), *FOUR[1:]], expected=3), LIMITS).health == "healthy"


def test_where_all_ports_are_gone_it_is_not_told_of_one() -> None:
    verdict = judge(facts([gone(number) for number in range(4)], expected=4), LIMITS)

    assert verdict.health == "healthy"
    assert "no port is found" in verdict.reason


def test_a_driver_that_is_reloaded_has_time_to_bring_its_ports_back() -> None:
    ports = [port(0), gone(1), gone(2), gone(3)]
    removed = [flap(number, 60 - 5 * number, None, counts=False) for number in range(1, 4)]
    flaps = [*removed, flap(0, 60, 20, counts=False)]

    assert judge(facts(ports, flaps, expected=4), LIMITS).health == "healthy"


def test_a_port_that_did_not_come_back_after_a_reload_is_missing() -> None:
    ago = BACK_WITHIN_SECONDS + 60
    flaps = [flap(0, ago, None, counts=False)]
    flaps += [flap(number, ago - number, 20, counts=False) for number in range(1, 4)]

    verdict = judge(facts([gone(0), *FOUR[1:]], flaps, expected=4), LIMITS)

    assert verdict.health == "unhealthy"


def test_soon_after_a_boot_no_port_is_missing() -> None:
    assert judge(facts([gone(0), *FOUR[1:]], expected=4, booted=True), LIMITS).health == "healthy"


def test_a_port_in_maintenance_is_no_reason() -> None:
    resting = port(0, flapping=True, maintenance=True, up=False)

    assert judge(facts([resting, *FOUR[1:]], OWN), LIMITS).health == "healthy"
    removed = gone(0, maintenance=True)
    assert judge(facts([removed, *FOUR[1:]], expected=4), LIMITS).health == "healthy"


def test_what_cannot_be_seen_is_unknown() -> None:
    verdict = judge(facts([port(0, readable=False, up=None), *FOUR[1:]]), LIMITS)

    assert verdict == ("unknown", "mlx5_0/1 cannot be read")


def test_what_is_certain_counts_whatever_cannot_be_seen() -> None:
    verdict = judge(facts(FOUR, OWN, blind=["the history is damaged"]), LIMITS)

    assert verdict.health == "unhealthy"


def test_many_reasons_are_still_a_line() -> None:
    ports = [port(number, readable=False) for number in range(9)]

    assert judge(facts(ports), LIMITS).reason.endswith("; and 4 more")


def test_no_port_is_missing_while_it_is_not_known_which_there_are() -> None:
    verdict = judge(facts([gone(0), *FOUR[1:]], expected=8, scouted=False), LIMITS)

    assert verdict == ("unknown", "it is not known yet which ports there are")


def test_what_is_missing_may_be_what_a_device_has_that_nobody_can_look_at() -> None:
    ports = [gone(0), *FOUR[1:]]

    renamed = judge(facts(ports, expected=4, blind_devices=["mlx5_9"]), LIMITS)
    more = judge(facts(FOUR, expected=5, blind_devices=["mlx5_3"]), LIMITS)

    assert renamed == ("unknown", "which ports mlx5_9 has cannot be told")
    assert more == ("unknown", "which ports mlx5_3 has cannot be told")


def test_a_device_whose_ports_are_known_excuses_no_other() -> None:
    ports = [gone(0), *FOUR[1:3], port(3, readable=False, up=None)]

    verdict = judge(facts(ports, expected=6, blind_devices=["mlx5_3"]), LIMITS)

    assert verdict == ("unhealthy", "1 of 6 expected ports missing: mlx5_0/1")


@given(
    st.lists(st.sampled_from(["seen", "unreadable", "blind", "blind, never seen"]), max_size=6),
    st.booleans(),
    st.integers(0, 6),
)
def test_of_a_node_that_lacks_nothing_what_cannot_be_told_is_never_a_no(
    devices: list[str], scouted: bool, fewer: int
) -> None:
    known = {"seen": True, "unreadable": False, "blind": False}
    ports = [
        port(number, readable=known[device])
        for number, device in enumerate(devices)
        if device in known
    ]
    if not scouted:  # as of an agent that knows nothing yet, or not all
        ports = ports[fewer:]
    blind = [f"mlx5_{n}" for n, device in enumerate(devices) if device.startswith("blind")]

    told = facts(ports, expected=len(devices), scouted=scouted, blind_devices=blind)

    assert judge(told, LIMITS).health != "unhealthy"


@st.composite
def any_flaps(draw: st.DrawFn) -> list[Flap]:
    seconds = st.floats(0, LOOK_BACK_SECONDS)
    return [
        flap(
            draw(st.integers(0, 3)),
            ago,
            draw(st.one_of(st.none(), st.floats(0, 600))),
            counts=draw(st.booleans()),
        )
        for ago in draw(st.lists(seconds, max_size=12))
    ]


@given(any_flaps(), st.lists(st.booleans(), min_size=4, max_size=4))
def test_what_all_ports_have_alike_is_never_a_no(flaps: list[Flap], up: list[bool]) -> None:
    """Whatever happened, had it happened to every port in the same seconds: the node is well."""
    alike = [
        one._replace(port=f"mlx5_{number}/1", earliest_ns=shifted, latest_ns=shifted)
        for one in flaps
        for number in range(4)
        for shifted in [one.earliest_ns + number * SAME_SECONDS * SECOND_NS // 4]
    ]
    ports = [port(number, up=is_up) for number, is_up in enumerate(up)]

    assert judge(facts(ports, alike, expected=4), LIMITS).health == "healthy"


@given(any_flaps(), st.sampled_from([0, 1, 3]))
def test_a_no_needs_more_flaps_than_allowed_or_a_flapping_or_missing_port(
    flaps: list[Flap], max_flaps: int
) -> None:
    verdict = judge(facts(FOUR, flaps, expected=4), LIMITS._replace(max_flaps=max_flaps))

    most = max(
        (sum(one.port == name for one in flaps) for name in {f.port for f in flaps}), default=0
    )
    if most <= max_flaps:
        assert verdict.health == "healthy"


@given(any_flaps())
def test_maintenance_of_all_ports_is_never_a_no(flaps: list[Flap]) -> None:
    ports = [port(number, maintenance=True, flapping=True) for number in range(4)]

    assert judge(facts(ports, flaps, expected=4), LIMITS).health == "healthy"


@given(any_flaps(), any_flaps())
def test_a_flap_more_that_is_not_shared_never_heals(flaps: list[Flap], more: list[Flap]) -> None:
    """A single port: nothing is shared, so more flaps can only be worse."""
    alone = [one._replace(port="mlx5_0/1") for one in flaps]
    longer = alone + [one._replace(port="mlx5_0/1") for one in more]

    if judge(facts([port(0)], alone), LIMITS).health == "unhealthy":
        assert judge(facts([port(0)], longer), LIMITS).health == "unhealthy"


@pytest.mark.parametrize("seconds_apart", [0, SAME_SECONDS])
def test_an_interval_that_may_be_the_same_moment_is_taken_for_it(seconds_apart: int) -> None:
    """After a pause of the agent nobody knows when in it a port went down."""
    pause_ns = 3000 * SECOND_NS
    flaps = [
        one._replace(port=f"mlx5_{number}/1", earliest_ns=one.latest_ns - pause_ns)
        for one in [flap(0, 10 + seconds_apart * index) for index in range(4)]
        for number in range(4)
    ]

    assert judge(facts(FOUR, flaps), LIMITS).health == "healthy"
