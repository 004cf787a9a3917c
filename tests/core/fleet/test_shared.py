"""Many ports that went down at once have one cause; some that did so by accident have none."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.core.fleet import Link, Peer, Topology
from flapd.core.fleet.shared import Downs, Shared, at_least
from flapd.core.fleet.stories import Stories
from flapd.model.event import Outage
from flapd.model.times import SECOND_NS
from tests.core.fleet.fleets import key, outage

LEAVES = Topology(
    Link(Peer(f"leaf-{number // 40}", str(number)), guid=key(number, 0)[:-2])
    for number in range(80)
)


SETTLED_NS = 3600 * SECOND_NS
"""By then it is known how often ports flap."""


def shared(outages: list[Outage], topology: Topology = LEAVES) -> list[Shared]:
    downs = Downs()
    for one in outages:
        downs.put(one)
    return downs.shared(topology)


def one_switch(at: float, count: int = 40) -> list[Outage]:
    return [outage(number, at + 0.01 * number, 12.0) for number in range(count)]


def test_all_ports_of_a_switch_are_that_switch() -> None:
    (found,) = shared(one_switch(100.0))

    assert found.words == "leaf-0: 40 ports of 40 nodes within 0.4 s"


def test_a_port_of_another_switch_that_went_down_meanwhile_is_not_of_it() -> None:
    (found,) = shared([*one_switch(100.0), outage(70, 100.1, 2.0)])

    assert found.switch == "leaf-0"
    assert "flap-70-0-100.1" not in {one.id for one in found.outages}


def test_ports_of_several_switches_share_something_else() -> None:
    (found,) = shared([outage(number, 100.0, 12.0) for number in range(80)])

    assert found.words == "a shared cause: 80 ports of 80 nodes within 0.0 s"


def test_a_few_ports_of_a_large_switch_are_not_the_switch() -> None:
    assert shared(one_switch(100.0, 5)) == []
    assert [one.switch for one in shared(one_switch(100.0, 8))] == ["leaf-0"]


def test_half_the_ports_of_a_small_switch_are_the_switch() -> None:
    small = Topology(Link(Peer("tor", str(n)), node=f"node{n}", port="mlx5_0/1") for n in range(6))
    unnumbered = Topology(Link(Peer("tor", ""), node=f"node{n}", port="mlx5_0/1") for n in range(6))

    assert [one.switch for one in shared(one_switch(100.0, 3), small)] == ["tor"]
    assert [one.switch for one in shared(one_switch(100.0, 3), unnumbered)] == ["tor"]
    assert shared(one_switch(100.0, 3), Topology()) == []


def test_a_dying_switch_is_found_whatever_goes_beside_it() -> None:
    """A small one as well, of which fewer went than of all that could be shared by accident."""
    small = Topology(
        Link(Peer(f"tor-{n // 4}", str(n)), node=f"node{n}", port="mlx5_0/1") for n in range(80)
    )
    beside = [outage(number, 100.2, 2.0) for number in (40, 50, 60)]

    (found,) = shared([*one_switch(100.0, 4), *beside], small)
    assert (found.switch, found.nodes) == ("tor-0", 4)
    (found,) = shared([*one_switch(100.0), *(outage(n, 100.1, 2.0) for n in range(70, 75))])
    assert (found.switch, found.nodes) == ("leaf-0", 40)


def test_where_more_goes_beside_a_switch_than_chance_brings_it_is_more_than_the_switch() -> None:
    (found,) = shared([*one_switch(100.0), *(outage(n, 100.1, 2.0) for n in range(70, 76))])

    assert (found.switch, found.nodes) == (None, 46)


def test_three_ports_that_go_within_seconds_have_nothing_in_common_but_a_small_switch() -> None:
    three = [outage(number, 100.0 + number / 40, 2.0) for number in (0, 40, 79)]

    assert shared(three) == shared(three, Topology()) == []


def test_all_ports_of_one_node_are_that_nodes_own() -> None:
    assert shared([outage(0, 100.0, 12.0, port=port) for port in range(8)]) == []


def test_what_nodes_did_to_themselves_is_not_shared() -> None:
    rebooted = [outage(number, 100.0, 12.0, cause="boot") for number in range(40)]
    planned = [outage(number, 300.0, 12.0, cause="maintenance") for number in range(40)]

    assert shared([*rebooted, *planned]) == []


def test_a_down_that_is_known_to_the_hour_stands_beside_none() -> None:
    wide = [
        outage(number, 100.0, None, down=outage(number, 100.0, 1.0).down) for number in range(2)
    ]
    away = outage(2, 100.0, 4000.0)
    late = outage(3, 3700.0, 1.0).down
    hidden = outage(2, 100.0, 4000.0, down=type(late)(away.down.earliest_ns, late.latest_ns, 0))

    assert shared([*wide, hidden]) == []


def test_where_ports_flap_all_the_time_a_few_at_once_are_an_accident() -> None:
    rng = random.Random(1)
    storm = [outage(rng.randrange(80), rng.uniform(0.0, 7200.0), 0.2, port=n) for n in range(7200)]

    assert [one for one in shared(storm) if one.outages[0].down.earliest_ns > SETTLED_NS] == []
    (found,) = (one for one in shared([*storm, *one_switch(7300.0)]) if one.nodes >= 40)
    assert found.switch == "leaf-0"


def flaps_of_a_day(an_hour: int, rng: random.Random) -> list[Outage]:
    """Of a large fleet, each for itself."""
    times = [rng.uniform(0.0, 86_400.0) for _ in range(24 * an_hour)]
    return [outage(rng.randrange(12_500), at, 0.2, port=n) for n, at in enumerate(times)]


@pytest.mark.parametrize("an_hour", [10, 100, 400, 800, 2000])
def test_chance_brings_nothing_together_in_a_day_however_often_ports_flap(an_hour: int) -> None:
    found = shared(flaps_of_a_day(an_hour, random.Random(an_hour)), Topology())

    assert [one for one in found if one.outages[0].down.earliest_ns > SETTLED_NS] == []


@pytest.mark.parametrize("an_hour", [10, 100, 400, 800, 2000])
def test_a_switch_that_dies_is_found_however_often_ports_flap(an_hour: int) -> None:
    rng = random.Random(an_hour)
    day = [one for one in flaps_of_a_day(an_hour, rng) if one.down.earliest_ns < 2 * SETTLED_NS]

    found = [one for one in shared([*day, *one_switch(7000.0)]) if one.nodes >= 40]
    assert len(found) == 1


@given(st.integers(0, 12_500), st.floats(0.0, 1000.0))
def test_a_chance_of_at_least_so_many_lies_between_0_and_1_and_falls(
    count: int, expected: float
) -> None:
    assert 0.0 <= at_least(count + 1, expected) <= at_least(count, expected) + 1e-12 <= 1.0 + 1e-9


@given(st.lists(st.tuples(st.integers(0, 79), st.integers(0, 200)), max_size=40), st.randoms())
def test_the_order_in_which_they_are_heard_changes_nothing(
    told: list[tuple[int, int]], rng: random.Random
) -> None:
    outages = [outage(number, 100.0 + at / 10, 1.0) for number, at in set(told)]
    mixed = [*outages, *outages]
    rng.shuffle(mixed)

    assert shared(mixed) == shared(outages)


@given(st.lists(st.tuples(st.integers(0, 79), st.integers(0, 200)), max_size=40))
def test_no_outage_is_in_two(told: list[tuple[int, int]]) -> None:
    found = shared([outage(number, 100.0 + at / 10, 1.0) for number, at in set(told)])
    names = [one.id for each in found for one in each.outages]

    assert len(names) == len(set(names))


def test_what_is_dropped_or_dated_anew_is_not_there_twice() -> None:
    downs = Downs()
    for one in one_switch(100.0, 7):
        downs.put(one)
    downs.put(outage(0, 500.0, 1.0, id="flap-0-0-100"))
    assert [one.nodes for one in downs.shared(LEAVES)] == [6]

    downs.drop("flap-1-0-100.01")
    assert downs.shared(LEAVES) == []


SMALL = Topology(Link(Peer("tor", str(n)), node=f"node{n}", port="mlx5_0/1") for n in range(6))
DOWN_AT = st.tuples(st.integers(0, 5), st.integers(0, 24).map(lambda at: 100.0 + at / 2))
STEPS = st.lists(st.one_of(DOWN_AT, DOWN_AT, st.sampled_from(["look", "forget"])), min_size=9)


@given(STEPS)
def test_what_was_asked_for_meanwhile_changes_nothing(steps: list[tuple[int, float] | str]) -> None:
    asked, left = Stories(), dict[str, Outage]()
    for step in steps:
        if step == "look":
            asked.share(SMALL)
        elif isinstance(step, tuple):
            number, at = step
            moved = outage(number, at, 12.0, id=f"flap-{number}-{round(at) % 3}")
            left[moved.id] = moved
            asked.downs.put(moved)
        elif left:
            name = min(left)
            del left[name]
            asked.downs.drop(name)
    asked.share(SMALL)

    told = shared(list(left.values()), SMALL)
    assert asked.downs.shared(SMALL) == told
    assert asked.shared_of == {one.id: each for each in told for one in each.outages}
