"""A file of cables that is read again says what happens from then on."""

from flapd.core.fleet import Link, Peer, Topology
from tests.core.fleet.fleets import looked, outage, view

TOR = Topology(Link(Peer("tor", str(n)), node=f"node{n}", port="mlx5_0/1") for n in range(6))


def test_what_goes_down_after_it_was_read_is_told_as_its_switch() -> None:
    fleet = view()
    before = [outage(number, 100.0 + 0.01 * number, 12.0) for number in range(3)]
    after = [outage(number, 900.0 + 0.01 * number, 12.0) for number in range(3)]

    looked(fleet, *before)
    fleet.use_topology(TOR)
    looked(fleet, *after)

    assert {fleet.shared_cause_of(one.id) for one in before} == {None}
    assert {fleet.shared_cause_of(one.id) for one in after} == {
        "tor: 3 ports of 3 nodes within 0.0 s"
    }


def test_what_was_chance_by_the_old_file_is_so_by_the_new_one() -> None:
    fleet = view(TOR)
    often = [outage(number % 6, 2.0 * number, 0.5, port=number) for number in range(600)]
    three = [outage(number, 1300.0 + 0.1 * number, 12.0) for number in range(3)]

    looked(fleet, *often, *three)
    fleet.use_topology(
        Topology(Link(Peer("renamed", str(n)), node=f"node{n}", port="mlx5_0/1") for n in range(6))
    )
    looked(fleet, outage(5, 1900.0, 1.0))

    assert {fleet.shared_cause_of(one.id) for one in three} == {None}
