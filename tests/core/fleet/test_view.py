"""What all nodes of a fleet tell becomes one story for each thing that happened."""

from typing import Any

import pytest
from msgspec.structs import replace

from flapd.core.fleet import Link, Peer, Topology
from flapd.core.incident.telling import is_withdrawn
from flapd.model.event import Event
from flapd.model.given import exactly
from flapd.model.incident import Incident
from flapd.model.times import SECOND_NS
from tests.core.fleet.fleets import (
    LATER,
    beat,
    counted,
    final,
    job,
    key,
    looked,
    node,
    outage,
    stall,
    stopped_by,
    timeout,
    told,
    transport_error,
    view,
    watched,
)
from tests.core.incident.parts import ns


def one_of(incidents: list[Incident]) -> Incident:
    assert len(incidents) == 1, [(one.verdict, one.explanation) for one in incidents]
    return incidents[0]


def test_a_flap_on_one_node_is_blamed_for_what_others_tell() -> None:
    fleet = view()
    watched(fleet, range(3))
    found = one_of(
        looked(
            fleet,
            *map(job, range(3)),
            outage(2, 100.0, 300.0),
            timeout(0, 701.0),
            timeout(1, 701.4),
        )
    )

    assert (found.verdict, found.node, found.regime) == ("caused", "node2", "watchdog")
    assert found.causes[0].flap == "flap-2-0-100"
    assert set(found.nodes) == {"node0", "node1", "node2"}
    assert "mlx5_0/1 of node2" in found.explanation[0]


def test_what_a_job_lost_is_counted_once_whatever_its_nodes_claim() -> None:
    fleet = view()
    watched(fleet, range(4))
    stalls = [stopped_by(1, 100.2, 17.0), *(stall(number, 100.2, 17.0) for number in (0, 2, 3))]
    found = one_of(looked(fleet, *map(job, range(4)), outage(1, 100.0, 12.0), *stalls))

    assert found.gpu_seconds is not None
    assert found.gpu_seconds.likely == pytest.approx(17.0 * 1024, rel=0.02)
    assert fleet.totals.gpu_seconds["absorbed"] == found.gpu_seconds.likely
    assert sum(fleet.totals.gpu_seconds.values()) == found.gpu_seconds.likely


def test_the_stall_of_a_node_that_died_ends_with_the_job_that_the_others_saw_end() -> None:
    fleet = view()
    watched(fleet, range(1, 4))
    fleet.beat(beat(0, 90.0), ns(90.01))
    ended = [job(number, until_unix_ns=ns(400.0), revision=2) for number in range(1, 4)]
    dead: list[Event] = [outage(0, 100.0, None), stopped_by(0, 100.2, None)]
    found = one_of(looked(fleet, *map(job, range(4)), *dead, *ended))

    assert found.verdict == "caused"
    assert found.lost_seconds is not None
    assert found.lost_seconds.likely < 400.0


def test_the_first_error_of_the_whole_job_counts_by_clocks_that_are_right() -> None:
    """The node whose clock is behind seems to be first, and is not."""
    fleet = view()
    watched(fleet, range(3), ahead={0: -40.0})
    errors = [
        timeout(0, 701.0 - 40.0, process_group="0", last_completed=7),
        timeout(1, 700.0, process_group="0", last_completed=9),
    ]
    found = one_of(looked(fleet, *map(job, range(3)), outage(2, 100.0, 300.0), *errors))

    assert found.verdict == "caused"
    assert found.symptoms[0] == errors[1].id
    assert "Furthest behind" not in " ".join(found.explanation)


def test_without_that_the_flap_would_come_after_its_own_symptom() -> None:
    fleet = view()
    watched(fleet, range(2), ahead={1: 30.0})
    stalls = [stall(0, 100.2, 17.0), stopped_by(1, 130.2, 17.0)]
    found = one_of(looked(fleet, *map(job, range(2)), outage(1, 130.0, 12.0), *stalls))

    assert found.verdict == "caused"
    assert found.begin_unix_ns == ns(100.0)


def test_a_flap_elsewhere_in_the_job_is_not_blamed() -> None:
    fleet = view()
    watched(fleet, range(3))
    found = looked(
        fleet,
        *map(job, range(3)),
        outage(1, 100.0, 12.0),
        outage(2, 103.0, 1.0),
        stall(0, 100.2, 17.0),
        stopped_by(1, 100.2, 17.0),
        stall(2, 100.2, 17.0),
    )
    blamed = {cause.flap: cause.probability for one in found for cause in one.causes}

    assert one_of(found).verdict == "caused"
    assert blamed["flap-1-0-100"] > 0.98
    assert blamed.get("flap-2-0-103", 0.0) < 0.01


def test_a_port_that_no_job_uses_hurt_nobody() -> None:
    fleet = view()
    watched(fleet, range(2))
    found = looked(
        fleet,
        *map(job, range(2)),
        outage(1, 100.0, 12.0, port=8),
        stall(0, 100.2, 17.0),
        stall(1, 100.2, 17.0),
    )

    assert {one.verdict for one in found} == {"no_job", "elsewhere"}


def test_a_pause_that_one_node_knows_to_be_the_jobs_own_is_none_on_any() -> None:
    fleet = view()
    watched(fleet, range(2))

    assert (
        looked(
            fleet,
            *map(job, range(2)),
            stall(0, 100.0, 20.0, stall_class="checkpoint"),
            stall(1, 100.1, 20.0, stall_class="unknown"),
        )
        == []
    )


def test_what_only_a_node_can_see_speaks_against_a_flap() -> None:
    """As a dump that shows a rank which never came; dumps stay on their node."""
    fleet = view()
    watched(fleet, range(2))
    error = timeout(0, 701.0)
    claims = final(_claimed(error.id))
    found = one_of(looked(fleet, *map(job, range(2)), error, *claims))

    assert found.verdict == "not_fabric"
    assert "rank 3 never came" in " ".join(found.explanation)


def _claimed(symptom: str) -> list[Incident]:
    fleet = view()
    claim = one_of(looked(fleet, job(0), timeout(0, 701.0)))
    return [
        replace(
            claim,
            id="incident-of-node0",
            nodes=(),
            jobs=(),
            symptoms=(symptom,),
            another_cause="rank 3 never came to collective 12",
        )
    ]


def test_nodes_that_fell_silent_are_not_taken_for_clean() -> None:
    fleet = view()
    watched(fleet, [0])
    fleet.beat(beat(1, -100.0), ns(-99.99))
    found = one_of(looked(fleet, *map(job, range(2)), stall(0, 100.2, 17.0)))

    assert found.verdict == "unknown"
    assert any("8 ports of node1" in one for one in found.blind_to)


def test_clean_ports_of_many_nodes_do_not_clear_what_is_between_switches() -> None:
    fleet = view()
    watched(fleet, range(2))
    small: dict[str, Any] = {"world_size": exactly(16, "environment")}
    found = one_of(looked(fleet, job(0, **small), job(1, **small), stall(0, 100.2, 17.0)))

    assert found.verdict == "elsewhere"
    assert "links between switches" in found.blind_to


def test_planned_work_is_told_as_such() -> None:
    fleet = view()
    watched(fleet, range(2))
    found = one_of(
        looked(
            fleet,
            *map(job, range(2)),
            outage(1, 100.0, 12.0, cause="maintenance"),
            stall(0, 100.2, 17.0),
            stopped_by(1, 100.2, 17.0),
        )
    )

    assert found.verdict == "caused"
    assert "in planned work" in found.explanation[0]


def test_a_job_that_gets_the_name_of_another_is_another() -> None:
    fleet = view()
    watched(fleet, range(4))
    old = [job(number, until_unix_ns=ns(-8 * 3600)) for number in range(2)]
    new = [job(number, id=f"new-{number}", since_unix_ns=ns(-3600)) for number in (2, 3)]
    found = one_of(looked(fleet, *old, *new, outage(0, 100.0, 12.0), stall(2, 100.2, 17.0)))

    assert found.verdict == "elsewhere"
    assert found.causes == ()


def test_two_jobs_of_one_name_at_one_time_are_two_where_each_is_complete() -> None:
    fleet = view()
    watched(fleet, range(4))
    size: dict[str, Any] = {"world_size": exactly(16, "environment")}
    first = [job(number, **size) for number in (0, 1)]
    second = [job(number, id=f"b-{number}", since_unix_ns=ns(-3600), **size) for number in (2, 3)]
    found = looked(
        fleet,
        *first,
        *second,
        outage(0, 100.0, 12.0),
        stall(1, 100.2, 17.0),
        stall(3, 100.2, 17.0),
    )

    assert sorted(one.verdict for one in found) == ["caused", "elsewhere"]
    assert all(one.affected_gpus == 16 for one in found)


def test_both_ends_of_a_cable_are_one_link() -> None:
    wired = Topology(
        [
            Link(Peer("node1", "mlx5_0/1"), node="node0", port="mlx5_0/1"),
            Link(Peer("node0", "mlx5_0/1"), node="node1", port="mlx5_0/1"),
        ]
    )
    fleet = view(wired)
    watched(fleet, range(2))
    stalls = [stopped_by(number, 100.2, 17.0) for number in range(2)]
    found = one_of(
        looked(fleet, *map(job, range(2)), outage(0, 100.0, 12.0), outage(1, 100.1, 12.0), *stalls)
    )

    assert [one.flap for one in found.causes] == ["flap-0-0-100"]
    assert "The other end of mlx5_0/1 of node0 is node1 port mlx5_0/1." in found.explanation


def test_many_ports_at_once_are_one_switch_and_one_incident_over_all_jobs() -> None:
    topology = Topology(
        Link(Peer("leaf-1", str(number)), guid=key(number, 0)[:-2]) for number in range(6)
    )
    fleet = view(topology)
    watched(fleet, range(6))
    found = one_of(
        looked(
            fleet,
            *(job(number, "4711" if number < 3 else "4712") for number in range(6)),
            *(outage(number, 100.0 + 0.1 * number, 12.0) for number in range(6)),
            *(
                stopped_by(number, 100.6, 17.0, job="4711" if number < 3 else "4712")
                for number in range(6)
            ),
        )
    )

    assert found.verdict == "caused"
    assert found.jobs == ("4711", "4712")
    assert found.job is None
    assert found.shared_cause == "leaf-1: 6 ports of 6 nodes within 0.5 s"
    assert "that is switch leaf-1, not 6 cables" in found.explanation[0]
    assert found.gpu_seconds is not None
    assert found.gpu_seconds.likely == pytest.approx(2 * 17.0 * 1024, rel=0.02)
    assert found.flap_gpu_seconds == {}
    assert fleet.shared_cause_of("flap-3-0-100.3") == found.shared_cause


def test_what_is_shared_is_told_also_where_it_hit_no_job_and_no_file_names_a_switch() -> None:
    fleet = view()
    found = one_of(looked(fleet, *(outage(number, 100.0, 12.0) for number in range(8))))

    assert found.verdict == "no_job"
    assert found.shared_cause == "a shared cause: 8 ports of 8 nodes within 0.0 s"
    assert not found.open


def test_a_port_that_went_down_alone_and_then_with_others_is_told_once() -> None:
    fleet = view()
    watched(fleet, range(8))
    events = told(
        *map(job, range(8)),
        outage(0, 100.0, 12.0),
        *(stopped_by(number, 100.5, 17.0) for number in range(8)),
    )
    for one in events:
        fleet.hear(one)
    first = fleet.look(ns(130.0))
    later = looked(fleet, *(outage(number, 100.2, 12.0) for number in range(1, 8)))

    found = one_of(final([*first, *later]))
    assert found.shared_cause is not None
    assert first[0].id in found.supersedes


def test_an_incident_that_goes_on_is_told_again_when_it_is_over() -> None:
    fleet = view()
    watched(fleet, range(2))
    for one in told(job(0), job(1), outage(1, 100.0, None), stall(0, 100.2, None)):
        fleet.hear(one)
    first = one_of(fleet.look(ns(110.0)))
    closed = outage(1, 100.0, 12.0, revision=2)
    last = one_of(looked(fleet, closed, stall(0, 100.2, 17.0, revision=2)))

    assert (first.open, first.revision) == (True, 1)
    assert (last.open, last.revision, last.id) == (False, 2, first.id)


def test_a_hub_that_starts_again_goes_on_with_what_it_told() -> None:
    events: list[Event] = [job(0), job(1), outage(1, 100.0, 12.0), stall(0, 100.2, 17.0)]
    before = view()
    watched(before, range(2))
    was = one_of(looked(before, *events))
    after = view()
    after.restore([was])
    watched(after, range(2))

    assert looked(after, *events) == []
    assert sum(after.totals.incidents.values()) == 0


def test_an_incident_that_another_took_in_goes_on_with_its_revisions_when_it_comes_back() -> None:
    """Also at a hub that began again meanwhile: whoever has it shows no lower revision."""
    events: list[Event] = [job(0), job(1), outage(1, 100.0, 12.0), stall(0, 100.2, 17.0)]
    before = view()
    watched(before, range(2))
    was = one_of(looked(before, *events))
    other = replace(was, id="incident-other", supersedes=(was.id,))
    after = view()
    after.restore([other], superseded=[replace(was, open=True, end_unix_ns=None)])
    watched(after, range(2))

    found = one_of([one for one in looked(after, *events) if one.id == was.id])
    assert (found.revision, found.open) == (was.revision + 1, False)
    assert sum(after.totals.gpu_seconds.values()) == 0.0


def test_what_turned_out_to_be_nothing_is_not_told_so_again_by_a_hub_that_starts_again() -> None:
    before = view()
    watched(before, range(2))
    first = one_of(looked(before, job(0), job(1), stall(0, 100.2, 17.0)))
    saved = stall(0, 100.2, 17.0, revision=2, stall_class="checkpoint")
    withdrawn = one_of(looked(before, saved))
    after = view()
    after.restore([withdrawn])
    watched(after, range(2))

    assert (withdrawn.id, is_withdrawn(withdrawn)) == (first.id, True)
    assert looked(after, job(0), job(1), saved) == []


def test_what_a_node_found_out_is_known_after_a_restart_though_its_claims_are_not_kept() -> None:
    before = view()
    watched(before, range(2))
    events: list[Event] = [job(0), job(1), timeout(0, 701.0)]
    was = one_of(looked(before, *events, *_claimed(events[2].id)))
    after = view()
    after.restore([was])
    watched(after, range(2))

    assert looked(after, *events) == []


def test_what_began_before_a_store_begins_stays_as_it_was_told() -> None:
    before = view()
    watched(before, range(2))
    was = one_of(looked(before, job(0), job(1), outage(1, 100.0, 12.0), stall(0, 100.2, 17.0)))
    after = view()
    after.restore([was], ns(300.0))
    watched(after, range(2))

    assert looked(after, job(0), job(1)) == []


def test_what_comes_days_late_is_told_no_more() -> None:
    """A story of that time is forgotten in part, and what is left would tell another."""
    fleet = view()
    watched(fleet, range(2))
    jobs = [job(0), job(1)]
    assert looked(fleet, *jobs, outage(1, 100.0, 12.0), stall(0, 100.2, 17.0)) != []
    days = 2 * 86400.0
    for one in told(outage(0, days, 3.0)):
        fleet.hear(one)
    fleet.look(ns(days + 100.0))

    for one in told(outage(1, 300.0, 12.0), stall(0, 300.2, 17.0)):
        fleet.hear(one)
    assert [one for one in fleet.look(ns(days + 200.0)) if one.begin_unix_ns < ns(LATER)] == []


def test_retries_that_a_port_counted_belong_to_the_job_that_uses_it() -> None:
    fleet = view()
    watched(fleet, range(2))
    error = counted(0, 135.0)
    found = one_of(looked(fleet, *map(job, range(2)), outage(1, 100.0, 60.0), error))

    assert (found.job, found.verdict) == ("4711", "caused")


@pytest.mark.parametrize(("layer", "is_blamed"), [("InfiniBand", False), ("Ethernet", True)])
def test_cards_of_ethernet_may_give_up_before_the_timers_say(layer: str, is_blamed: bool) -> None:
    """Adaptive retransmission: what would be too soon on InfiniBand is not there."""
    fleet = view()
    for number in range(2):
        one = beat(number, LATER)
        ports = tuple(replace(port, link_layer=layer) for port in one.ports)
        fleet.beat(replace(one, ports=ports), ns(LATER))
    found = looked(fleet, *map(job, range(2)), outage(1, 100.0, 20.0), transport_error(0, 117.0))

    assert any(one.verdict in ("caused", "likely") for one in found) is is_blamed


def test_times_of_a_shared_log_are_those_of_who_wrote_it() -> None:
    fleet = view()
    watched(fleet, range(3), ahead={0: 60.0})
    error = transport_error(
        0, 60.0 + 135.0, node=node(1), logged_ns=ns(195.0), arrived_ns=ns(135.0) + SECOND_NS
    )
    found = one_of(looked(fleet, *map(job, range(3)), outage(2, 100.0, 60.0), error))

    assert found.verdict == "caused"
