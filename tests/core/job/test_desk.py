"""What jobs, logs, counters and traffic tell, as the engine tells it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from flapd.core.job.evidence import HORIZON_NS, SETTLED_NS
from flapd.model.event import Event, Outage
from flapd.model.fault import Fault
from flapd.model.finding import Member, Network, PlannedPause, Setting
from flapd.model.incident import Incident
from flapd.model.job import Job, Rank
from flapd.model.observation import (
    READ_FIRST,
    READ_SLOW,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    DumpsRead,
    FaultRead,
    PortSeen,
    Sample,
    Tick,
)
from flapd.model.port import Port
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS
from tests.core.job.node import (
    EXHAUSTED,
    KEYS,
    OFFSET_NS,
    PORTS,
    SENT,
    Node,
    fault,
    ns,
    of,
    samples,
    unix,
)
from tests.core.job.stall.traffic import bursts, stalled

LEARN = 300.0


def retries(value: int, begin: float, end: float, key: str = KEYS[0]) -> Sample:
    return Sample(key, ns(begin), ns(end), READ_SLOW | READ_STATE, {EXHAUSTED: value})


class TestJobs:
    def test_a_job_is_told_with_the_policy_that_its_environment_sets(self) -> None:
        (job,) = of(Job, Node().job(1.0))

        assert (job.job, job.kind, job.revision) == ("4711", "training", 1)
        assert job.world_size is not None
        assert (job.world_size.value, job.local_ranks, job.gpus) == (64, (8, 9), 2)
        assert job.ports == dict.fromkeys(KEYS, "queue_pair")
        assert (job.since_unix_ns, job.until_unix_ns) == (unix(-3600), None)
        assert job.policy["ib_timeout"].value == 22
        assert job.policy["ib_timeout"].source == "environment"

    def test_the_same_job_seen_again_is_no_news(self) -> None:
        node = Node()
        node.job(1.0)

        assert node.job(11.0) == []
        assert node.tick(12.0) == []

    def test_a_job_that_is_not_present_any_more_is_over(self) -> None:
        node = Node()
        node.job(1.0)
        assert node.present(11.0, "4711") == []

        (job,) = of(Job, node.present(21.0))

        assert (job.revision, job.until_unix_ns) == (2, unix(21.0))
        assert node.view.running == ()

    def test_a_job_that_was_missed_once_goes_on(self) -> None:
        node = Node()
        node.job(1.0)
        node.present(11.0)

        (job,) = of(Job, node.job(21.0))

        assert (job.revision, job.until_unix_ns) == (3, None)

    def test_another_job_of_the_same_name_is_another(self) -> None:
        node = Node()
        node.job(1.0)
        node.present(11.0)

        ranks = (Rank(rank=0, pid=300, started_unix_ns=unix(15.0)),)
        (job,) = of(Job, node.job(21.0, ranks=ranks))

        assert (job.revision, job.since_unix_ns) == (1, unix(15.0))
        assert len(node.last(Job)) == 2

    def test_ranks_that_are_started_anew_do_not_make_another_job(self) -> None:
        node = Node()
        node.job(1.0)
        ranks = (Rank(rank=8, pid=300, started_unix_ns=unix(15.0)),)

        (job,) = of(Job, node.job(21.0, ranks=ranks))

        assert (job.revision, job.since_unix_ns, job.local_ranks) == (2, unix(-3600), (8,))

    def test_ranks_that_end_one_after_the_other_are_all_in_what_is_told_at_last(self) -> None:
        node = Node()
        everybody = tuple(
            Rank(rank=rank, pid=100 + rank, started_unix_ns=unix(-3600)) for rank in range(8)
        )
        node.job(1.0, ranks=everybody, gpus=8)
        for left in (7, 3, 1):
            node.job(20.0 - left, ranks=everybody[:left], gpus=left)

        (job,) = of(Job, node.present(21.0))

        assert (job.until_unix_ns, job.gpus) == (unix(21.0), 8)
        assert job.local_ranks == tuple(range(8))

    def test_of_a_reboot_no_job_is_left_and_each_ended_when_it_was_last_seen(self) -> None:
        node = Node()
        node.job(1.0)
        node.present(11.0, "4711")

        (job,) = of(Job, node.take(ClockPair(0, OFFSET_NS + ns(500.0), "boot2")))

        assert job.until_unix_ns == unix(11.0)

    def test_what_a_process_printed_goes_before_its_environment(self) -> None:
        node = Node()
        node.job(1.0)

        (job,) = of(Job, node.note(2.0, Setting("NCCL_IB_TIMEOUT", "18", "node7", 7)))

        assert (job.policy["ib_timeout"].value, job.policy["ib_timeout"].source) == (18, "log")

    def test_the_timeout_that_a_watchdog_prints_is_in_force(self) -> None:
        node = Node()
        node.job(1.0)

        told = node.read(700.0, fault("watchdog_timeout", 699.0, pid=7, timeout_seconds=1200.0))

        (job,) = of(Job, told)
        assert job.policy["watchdog_seconds"].value == 1200.0

    def test_dumps_say_the_timeout(self) -> None:
        node = Node()
        node.job(1.0)

        told = node.take(DumpsRead(None, (), (900.0,), ns(2.0)), Tick(ns(3.0)))

        (job,) = of(Job, told)
        assert job.policy["watchdog_seconds"].value == 900.0
        assert job.policy["watchdog_seconds"].source == "dump"

    def test_what_cannot_be_found_out_is_as_configured(self) -> None:
        node = Node(world_size=512, kind="elastic", ib_timeout=19)

        (job,) = of(Job, node.job(1.0, world_size=None, environment=None))

        assert job.kind == "elastic"
        assert job.world_size is not None
        assert (job.world_size.value, job.world_size.source) == (512, "configuration")
        assert job.policy["ib_timeout"].source == "configuration"

    def test_a_launcher_that_may_change_the_number_of_nodes_makes_a_job_elastic(self) -> None:
        (job,) = of(Job, Node().job(1.0, environment={"PET_NNODES": "2:8"}))

        assert job.kind == "elastic"

    def test_the_largest_communicator_tells_size_and_ranks_that_nothing_else_tells(self) -> None:
        node = Node()
        ranks = (Rank(rank=None, pid=100, inner_pid=7, started_unix_ns=unix(-10)),)
        node.job(1.0, ranks=ranks, world_size=None)

        def member(rank: int, size: int) -> Member:
            return Member("node7", 7, rank, size, 0, 0, None, "0x1")

        node.note(2.0, member(12, 128))
        (job,) = of(Job, [*node.told, *node.note(3.0, member(3, 8))])[-1:]

        assert job.world_size is not None
        assert (job.world_size.value, job.local_ranks) == (128, (12,))

    def test_ports_are_those_that_nccl_names_where_no_queue_pair_tells(self) -> None:
        node = Node()
        node.job(1.0, ports={})

        (job,) = of(Job, node.note(2.0, Network("node7", 7, ("mlx5_1:1/IB", "mlx5_9:1/IB"))))

        assert job.ports == {KEYS[1]: "log"}

    def test_where_nothing_tells_the_ports_they_are_those_with_traffic(self) -> None:
        node = Node()
        node.job(0.0, ports={})

        node.take(*samples([(1.0, 2.0)], 4.0, ports=PORTS[:1]))

        assert node.last(Job)[0].ports == {KEYS[0]: "traffic"}

    def test_traffic_on_the_ports_of_another_job_says_nothing(self) -> None:
        node = Node()
        node.job(0.0, job="1", ports={KEYS[0]: "queue_pair"})
        node.job(0.0, job="2", ports={}, ranks=())

        node.take(*samples([(1.0, 2.0)], 4.0))

        assert [job.ports for job in node.last(Job)] == [
            {KEYS[0]: "queue_pair"},
            {KEYS[1]: "traffic"},
        ]


class TestFaults:
    def test_a_fault_is_told_with_its_job_and_as_the_primary_one(self) -> None:
        node = Node()
        node.job(1.0)

        (told,) = of(Fault, node.read(5.0, fault("transport_error", 4.0, pid=7, status=12)))

        assert (told.job, told.primary, told.node, told.revision) == ("4711", True, "node7", 1)

    def test_the_same_message_again_is_no_news(self) -> None:
        node = Node()
        node.job(1.0)
        one = fault("transport_error", 4.0, pid=7, status=12)
        node.read(5.0, one)

        assert node.read(6.0, one) == []
        node.restart()
        assert node.read(7.0, one) == []

    def test_nor_is_it_once_the_fault_is_held_against_no_other_any_more(self) -> None:
        node = Node()
        one = fault("transport_error", 4.0, id="fault-1", pid=7, text="IBV_WC")
        node.read(5.0, one)
        later = 6.0 + HORIZON_NS / SECOND_NS
        node.tick(later)

        assert b"IBV_WC" not in node.engine.checkpoint()["jobs"]
        assert node.read(later + 1.0, one) == []

    def test_messages_that_say_the_same_are_one_fault(self) -> None:
        node = Node()
        node.job(1.0)
        lines = [
            fault(
                "port_event", 4.0, pid=pid, host="node7", hca="mlx5_0", port=1, event="port error"
            )
            for pid in (7, 8)
        ]

        (told,) = of(Fault, node.read(5.0, *lines))

        assert told.repeats == 2

    def test_one_that_comes_later_revises_the_fault_that_was_told(self) -> None:
        node = Node()
        node.job(1.0)
        first, second = (
            fault(
                "port_event", 4.0, pid=pid, host="node7", hca="mlx5_0", port=1, event="port error"
            )
            for pid in (7, 8)
        )
        (told,) = of(Fault, node.read(5.0, second))

        (again,) = of(Fault, node.read(6.5, first))

        assert (again.id, again.revision, again.repeats) == (told.id, 2, 2)

    def test_of_two_faults_that_turn_out_to_be_one_the_later_is_left_out(self) -> None:
        node = Node()
        known = {"host": "node7", "hca": "mlx5_0", "port": 1, "event": "port error"}
        node.job(1.0, job="1", ranks=())
        node.job(1.0, job="2", ranks=())
        first = fault("port_event", 4.0, job="1", pid=7, **known)
        second = fault("port_event", 4.5, pid=8, **known)
        assert len(of(Fault, node.read(9.0, first, second))) == 2

        node.job(9.1, job="1")
        told = of(Fault, node.tick(9.2))
        node.tick(20.0)

        assert {one.id: (one.merged_into, one.repeats) for one in told} == {
            first.id: (None, 2),
            second.id: (first.id, 1),
        }
        assert node.view.totals.faults["port_event"] == 1

    def test_an_earlier_error_that_is_read_late_takes_the_blame(self) -> None:
        node = Node()
        node.job(1.0)
        (late,) = of(Fault, node.read(9.0, fault("nccl_error", 5.0, pid=7, rank=8)))
        assert late.primary

        told = of(Fault, node.read(10.0, fault("transport_error", 4.5, pid=7, status=12)))

        assert {one.kind: one.primary for one in told} == {
            "transport_error": True,
            "nccl_error": False,
        }

    def test_what_followed_from_another_does_not_outlive_it(self) -> None:
        node = Node()
        node.job(1.0)
        node.read(9.0, fault("transport_error", 8.0, pid=7, status=12))
        node.read(300.0, fault("nccl_error", 299.0, pid=7, rank=8))

        told = [
            event
            for at in range(7100, 7600, 50)
            for event in node.read(at, fault("port_event", at, job="other", pid=at, event="x"))
        ]

        assert {one.job for one in of(Fault, told)} == {"other"}

    @pytest.mark.parametrize(
        ("known", "job"),
        [
            ({"pid": 7}, "1"),
            ({"pid": 21, "host": "node7.cluster"}, "2"),
            ({"pid": 7, "host": "node8"}, None),
            ({"pid": 999}, None),
            ({}, None),
            ({"job": "2", "pid": 7}, "2"),
        ],
    )
    def test_a_fault_is_of_the_job_whose_process_says_so(
        self, known: dict[str, object], job: str | None
    ) -> None:
        node = Node()
        own = Rank(rank=0, pid=100, inner_pid=7, host="node7", started_unix_ns=unix(-10))
        other = Rank(rank=0, pid=200, inner_pid=21, host="node7", started_unix_ns=unix(-10))
        node.job(1.0, job="1", ranks=(own,))
        node.job(1.0, job="2", ranks=(other,))

        (told,) = of(Fault, node.read(5.0, fault("transport_error", 4.0, **known)))

        assert told.job == job

    def test_of_an_unknown_process_it_is_of_the_only_job_that_ran_then(self) -> None:
        node = Node()
        node.job(1.0)
        node.present(50.0)

        told = of(
            Fault,
            node.read(
                60.0,
                fault("process_death", 55.0),
                fault("heartbeat", 900.0),
                fault("dump_signal", 9),
            ),
        )

        assert {one.kind: one.job for one in told} == {
            "process_death": "4711",
            "dump_signal": "4711",
            "heartbeat": None,
        }

    def test_a_job_that_is_seen_later_gets_its_faults(self) -> None:
        node = Node()
        (told,) = of(Fault, node.read(5.0, fault("transport_error", 4.0, pid=7)))
        assert told.job is None
        node.job(6.0)

        (again,) = of(Fault, node.tick(7.0))

        assert (again.id, again.job, again.revision) == (told.id, "4711", 2)

    def test_a_fault_keeps_its_job_when_that_is_forgotten(self) -> None:
        node = Node()
        node.job(1.0)
        node.present(10.0)
        node.read(11.0, fault("transport_error", 9.0, pid=7))
        for at in range(3600, 6 * 3600, 3600):
            node.read(at, fault("port_event", at, event=str(at), job="4711"))

        assert {one.job for one in node.last(Fault)} == {"4711"}

    def test_faults_are_counted_once_when_they_are_settled(self) -> None:
        node = Node()
        node.read(5.0, fault("transport_error", 4.0, pid=7))
        assert node.view.totals.faults["transport_error"] == 0

        node.tick(6.0 + SETTLED_NS / SECOND_NS)
        node.restart()
        node.tick(100.0)
        node.tick(20.0 + HORIZON_NS / SECOND_NS)

        assert node.view.totals.faults["transport_error"] == 1

    def test_of_a_flood_from_one_process_the_first_are_kept_and_the_rest_counted(self) -> None:
        node = Node()
        flood = [
            fault(
                "transport_error", 4.0 + number / 1e4, pid=7, status=5, consequence=True, peer="p"
            )
            for number in range(1000)
        ]

        (told,) = of(Fault, node.read(5.0, *flood))

        assert (told.repeats, told.time_ns) == (1000, unix(4.0))
        assert len(node.engine.checkpoint()["jobs"]) < 20_000

    def test_what_happens_again_much_later_is_no_part_of_a_flood(self) -> None:
        node = Node()
        known = {"host": "node7", "pid": 7, "hca": "mlx5_0", "port": 1, "event": "port error"}
        for at in range(100, 4000, 100):
            node.read(at, fault("port_event", at, **known))

        assert len(node.last(Fault)) == 39

    def test_of_too_many_faults_those_that_follow_from_others_go_first_and_that_is_said(
        self,
    ) -> None:
        node = Node()
        first = fault("transport_error", 4.0, pid=7, status=12)
        node.read(5.0, first)
        for batch in range(4):
            node.read(
                6.0 + batch,
                *(
                    fault(
                        "transport_error", 5.0, pid=1000 * batch + pid, status=5, consequence=True
                    )
                    for pid in range(400)
                ),
            )
        told_before = len(node.told)

        assert node.view.totals.faults_dropped >= 1000
        assert len(node.engine.checkpoint()["jobs"]) < 600_000
        (again,) = of(Fault, node.read(20.0, fault("nccl_error", 10.0, pid=7, rank=8)))
        assert not again.primary
        assert len(node.told) == told_before + 1


class TestCounters:
    def test_retries_that_ran_out_are_a_fault_without_log_and_job(self) -> None:
        node = Node()
        node.take(retries(0, 1.0, 1.1), retries(2, 1.5, 1.6))

        (told,) = of(Fault, node.tick(2.0))

        assert (told.kind, told.hca, told.port, told.repeats) == ("counter", "mlx5_0", 1, 2)
        assert told.job is None
        assert told.time_ns is not None
        assert told.time_ns - told.clock_error_ns <= unix(1.0)
        assert told.time_ns + told.clock_error_ns >= unix(1.6)
        assert told.clock_error_ns <= ns(0.31)

    def test_they_are_of_the_job_that_uses_the_port(self) -> None:
        node = Node()
        node.job(0.0, job="1", ports={KEYS[0]: "queue_pair"})
        node.job(0.0, job="2", ports={KEYS[1]: "queue_pair"}, ranks=())
        node.take(retries(0, 1.0, 1.1, KEYS[1]), retries(2, 1.5, 1.6, KEYS[1]))

        (told,) = of(Fault, node.tick(2.0))

        assert told.job == "2"

    def test_what_is_told_of_a_port_just_after_its_job_ended_is_of_that_job(self) -> None:
        node = Node()
        node.job(0.5)
        node.take(retries(0, 1.0, 1.1), Tick(ns(1.2)))
        node.present(10.0)
        node.take(retries(2, 10.5, 10.6))

        (told,) = of(Fault, node.tick(11.0))

        assert told.job == "4711"

    def test_of_two_jobs_one_after_the_other_it_is_of_the_one_that_ran_then(self) -> None:
        node = Node()
        node.job(0.5)
        node.take(retries(0, 9.0, 9.1), Tick(ns(9.2)))
        node.present(10.0)
        ranks = (Rank(rank=0, pid=300, started_unix_ns=unix(20.0)),)
        node.job(21.0, job="4712", ranks=ranks)
        node.take(Tick(ns(21.1)), retries(0, 29.0, 29.1), retries(2, 29.5, 29.6))

        (told,) = of(Fault, node.tick(30.0))

        assert told.job == "4712"

    def test_a_counter_that_was_not_read_for_a_while_may_have_risen_all_the_time(self) -> None:
        node = Node()
        quiet = Sample(KEYS[0], ns(2.0), ns(2.1), READ_SLOW, {}, {EXHAUSTED: "EIO"})
        node.take(retries(0, 1.0, 1.1), quiet, Sample(KEYS[0], ns(3.0), ns(3.1), READ_SLOW))
        node.take(retries(1, 9.0, 9.1))

        (told,) = of(Fault, node.tick(10.0))

        assert told.time_ns is not None
        assert told.time_ns - told.clock_error_ns <= unix(1.0)

    def test_a_sweep_that_found_nothing_new_narrows_when_it_was(self) -> None:
        node = Node()
        node.take(retries(0, 1.0, 1.1), Sample(KEYS[0], ns(8.5), ns(8.6), READ_SLOW))
        node.take(retries(1, 9.0, 9.1))

        (told,) = of(Fault, node.tick(10.0))

        assert told.clock_error_ns <= ns(0.31)

    def test_a_reset_a_reboot_and_a_first_reading_are_none(self) -> None:
        node = Node()
        node.take(retries(5, 1.0, 1.1), retries(3, 1.5, 1.6))
        node.take(ClockPair(ns(2.0), OFFSET_NS, "boot2"), retries(9, 3.0, 3.1))

        assert of(Fault, node.tick(4.0)) == []

    def test_what_was_counted_while_nobody_looked_is_told(self) -> None:
        node = Node()
        node.take(retries(0, 1.0, 1.1))
        node.restart()
        reads = READ_FIRST | READ_SLOW
        node.take(Sample(KEYS[0], ns(100.0), ns(100.1), reads, {EXHAUSTED: 1}))

        (told,) = of(Fault, node.tick(101.0))

        assert told.clock_error_ns >= ns(49.0)

    def test_queue_pairs_that_are_torn_down_are_no_fault(self) -> None:
        names = ("hw_counters/resp_cqe_error", "hw_counters/resp_cqe_flush_error")
        node = Node()
        node.take(Sample(KEYS[0], ns(1.0), ns(1.1), READ_SLOW, dict.fromkeys(names, 0)))
        node.take(Sample(KEYS[0], ns(1.5), ns(1.6), READ_SLOW, dict.fromkeys(names, 512)))
        assert of(Fault, node.tick(2.0)) == []

        node.take(Sample(KEYS[0], ns(2.5), ns(2.6), READ_SLOW, {names[0]: 515}))

        (told,) = of(Fault, node.tick(3.0))
        assert (told.form, told.repeats) == ("completion_error", 3)

    def test_a_driver_with_other_names_is_understood(self) -> None:
        node = Node()
        port = Port("guid-9/1", "bnxt_re0", 1, "Ethernet", driver="bnxt_re")
        name = "hw_counters/max_retry_exceeded"
        node.take(PortSeen(port, 0))
        node.take(
            Sample(port.key, ns(1.0), ns(1.1), READ_SLOW | READ_FIRST, {name: 4}),
            Sample(port.key, ns(1.5), ns(1.6), READ_SLOW, {name: 5}),
        )

        (told,) = of(Fault, node.tick(2.0))

        assert (told.hca, told.event) == ("bnxt_re0", "retries exhausted")


def run_of(node: Node, length: float = 4.3, *, down: bool = True, until: float = 30.0) -> float:
    """A job that steps for a while, stands still once and goes on; when it did so."""
    steps = list(bursts(LEARN + until))
    at = next(begin for begin, _ in steps if begin > LEARN) + 1.0
    downs = [(KEYS[1], at)] if down else []
    node.take(*samples(stalled(steps, [(at, length)]), LEARN + until, downs=downs))
    return at


class TestQueuePairs:
    def test_each_rise_of_those_in_error_is_told_once(self) -> None:
        node = Node()
        node.job(1.0)
        told = []
        for at, count in ((2.0, 0), (20.0, 3), (60.0, 3), (200.0, 4), (400.0, 1)):
            node.job(at, queue_pairs_in_error={KEYS[0]: count} if count else {})
            told += of(Fault, node.tick(at + 1))

        assert [(one.kind, one.hca, one.port, one.job) for one in told] == [
            ("counter", "mlx5_0", 1, "4711")
        ] * 2
        assert [one.repeats for one in told] == [3, 1]
        assert told[0].text == "3 queue pairs of job 4711 on mlx5_0/1 are in error"

    def test_they_say_that_a_connection_died_but_neither_when_nor_of_what(self) -> None:
        """A peer that dies brings them as well."""
        node = Node()
        node.job(1.0)
        node.job(20.0, queue_pairs_in_error={KEYS[0]: 1})
        node.tick(21.0)

        (told,) = node.last(Fault)
        assert not told.primary
        assert node.last(Incident) == []


class TestStalls:
    def test_a_link_that_went_down_explains_why_a_job_stood_still(self) -> None:
        node = Node()
        node.job(0.0)

        at = run_of(node)

        (stall,) = node.last(Stall)
        assert (stall.job, stall.stall_class, stall.node) == ("4711", "local_link", "node7")
        assert stall.seconds == pytest.approx(4.3, abs=0.3)
        assert stall.begin_unix_ns == pytest.approx(unix(at), abs=ns(0.3))
        assert sorted(stall.ports) == sorted(KEYS)
        totals = node.view.totals
        assert totals.stalls["local_link"] == 1
        assert totals.stall_ns["local_link"] == round((stall.seconds or 0) * SECOND_NS)

    def test_it_is_told_while_it_lasts_and_counted_when_it_is_over(self) -> None:
        node = Node()
        node.job(0.0)

        run_of(node, 60.0, until=20.0)

        (stall,) = node.last(Stall)
        assert stall.end_ns is None
        assert list(node.view.stalls) == [stall]
        assert sum(node.view.totals.stalls.values()) == 0

        (over,) = of(Stall, node.present(LEARN + 20.0))

        assert (over.stall_class, over.revision) == ("local_link", stall.revision + 1)
        assert list(node.view.stalls) == []
        assert node.view.totals.stalls["local_link"] == 1

    def test_a_job_that_ends_after_its_last_step_has_not_hung(self) -> None:
        node = Node()
        node.job(0.0)
        run_of(node, 60.0, down=False, until=20.0)

        (over,) = of(Stall, node.present(LEARN + 20.0))

        assert over.stall_class == "job_end"

    def test_a_job_that_stood_still_for_long_before_it_was_gone_has(self) -> None:
        node = Node()
        node.job(0.0)
        run_of(node, 600.0, down=False, until=400.0)

        (over,) = of(Stall, node.present(LEARN + 400.0))

        assert over.stall_class == "unknown"

    def test_a_stall_without_a_link_event_is_not_of_this_node(self) -> None:
        node = Node()
        node.job(0.0)

        run_of(node, down=False)

        assert [stall.stall_class for stall in node.last(Stall)] == ["unknown"]

    def test_acknowledgements_that_do_not_come_tell_of_a_remote_one(self) -> None:
        node = Node()
        node.job(0.0)
        steps = stalled(list(bursts(LEARN + 30)), [(LEARN, 20.0)])
        name = "hw_counters/local_ack_timeout_err"
        node.take(*samples(steps, 1.0))
        node.take(Sample(KEYS[0], ns(1.0), ns(1.0), READ_SLOW, {name: 0}))
        node.take(*samples(steps, LEARN + 10, begin=1.1))
        node.take(Sample(KEYS[0], ns(LEARN + 9.95), ns(LEARN + 9.96), READ_SLOW))
        node.take(Sample(KEYS[0], ns(LEARN + 10), ns(LEARN + 10.01), READ_SLOW, {name: 8}))

        (stall,) = of(Stall, node.tick(LEARN + 10.2))

        assert (stall.stall_class, stall.end_ns) == ("remote", None)

    def test_a_job_that_says_that_it_saves_explains_why_it_stands_still(self) -> None:
        node = Node()
        node.job(0.0)
        steps = stalled(list(bursts(LEARN + 40)), [(LEARN, 20.0)])
        node.take(*samples(steps, LEARN))

        node.note(LEARN, PlannedPause("checkpoint", unix(LEARN), 0))
        node.take(*samples(steps, LEARN + 15, begin=LEARN + 0.1))

        assert [stall.stall_class for stall in node.last(Stall)] == ["checkpoint"]

    def test_what_it_said_long_before_explains_nothing(self) -> None:
        node = Node()
        node.job(0.0)
        steps = stalled(list(bursts(LEARN + 40)), [(LEARN, 20.0)])
        node.take(*samples(steps, LEARN - 60))

        node.note(LEARN - 60, PlannedPause("checkpoint", unix(LEARN - 60), 0))
        node.take(*samples(steps, LEARN + 15, begin=LEARN - 59.9))

        assert [stall.stall_class for stall in node.last(Stall)] == ["unknown"]

    def test_a_log_of_yesterday_announces_nothing(self) -> None:
        node = Node()
        node.job(0.0)
        steps = stalled(list(bursts(LEARN + 40)), [(LEARN, 20.0)])
        node.take(*samples(steps, LEARN))

        node.note(LEARN, PlannedPause("checkpoint", unix(LEARN - 86400), 0))
        node.take(*samples(steps, LEARN + 15, begin=LEARN + 0.1))

        assert [stall.stall_class for stall in node.last(Stall)] == ["unknown"]

    def test_of_inference_nothing_is_told(self) -> None:
        node = Node(kind="inference")
        node.job(0.0)

        run_of(node)

        assert node.last(Stall) == []

    def test_a_port_that_is_not_read_is_not_idle(self) -> None:
        """As opposed to one that was read and had not moved."""
        node = Node()
        node.job(0.0)
        steps = stalled(list(bursts(LEARN + 30)), [(LEARN, 60.0)])
        node.take(*samples(steps, LEARN))
        blind = [
            Sample(key, ns(LEARN + 1 + at), ns(LEARN + 1 + at), READ_STATE)
            for at in range(20)
            for key in KEYS
        ]

        node.take(*blind, Tick(ns(LEARN + 25)))

        assert node.last(Stall) == []

    def test_a_second_down_of_a_burst_can_be_why_as_well(self) -> None:
        node = Node()
        node.job(0.0)
        steps = stalled(list(bursts(LEARN + 30)), [(LEARN + 1, 4.0)])
        # The first down costs nothing, the second is of the same flap.
        node.take(
            *samples(steps, LEARN + 20, downs=[(KEYS[1], LEARN - 0.6), (KEYS[1], LEARN + 1.0)])
        )

        (outage,) = node.last(Outage)
        assert outage.count == 2
        assert [stall.stall_class for stall in node.last(Stall)] == ["local_link"]

    def test_a_member_of_a_bond_that_goes_down_is_why_the_bond_stands_still(self) -> None:
        bond = Port("guid-7/1", "mlx5_bond_0", 1, "Ethernet", members=("eth0",))
        member = Port(
            "guid-7/1/eth0",
            "mlx5_bond_0",
            1,
            "Ethernet",
            netdev="eth0",
            witnesses=("net/carrier_down_count",),
            member="eth0",
        )
        node = Node()
        node.take(PortSeen(bond, 0), PortSeen(member, 0))
        node.job(0.0, ports={bond.key: "queue_pair"})
        steps = stalled(list(bursts(LEARN + 30)), [(LEARN + 1, 4.0)])

        def carrier(at: float, downs: int, first: int = 0) -> Sample:
            counts = {"net/carrier_down_count": downs, "net/carrier_up_count": downs + 1}
            return Sample(member.key, ns(at), ns(at), READ_WITNESS | first, counts)

        node.take(carrier(0.0, 0, READ_FIRST))
        node.take(*samples(steps, LEARN + 1, ports=[bond]))
        node.take(carrier(LEARN + 0.9, 0), carrier(LEARN + 1, 1))
        node.take(*samples(steps, LEARN + 10, begin=LEARN + 1.1, ports=[bond]))

        assert node.last(Outage)[0].key == member.key
        assert [stall.stall_class for stall in node.last(Stall)] == ["local_link"]

    def test_a_job_on_ports_that_are_not_watched_is_not_judged_by_others(self) -> None:
        node = Node()
        node.job(0.0, ports={"guid-excluded/1": "queue_pair"})

        run_of(node)

        assert node.last(Stall) == []
        assert node.last(Job)[0].ports == {"guid-excluded/1": "queue_pair"}


def test_a_sample_that_is_older_than_the_last_one_changes_nothing() -> None:
    node = Node()
    node.take(retries(0, 1.0, 1.1), retries(4, 2.0, 2.1), retries(2, 1.5, 2.2))

    (told,) = of(Fault, node.tick(3.0))

    assert told.repeats == 4


def test_ids_and_events_do_not_depend_on_which_process_is_read_first() -> None:
    """Within one tick, the set decides."""
    lines = [
        fault("transport_error", 4.0, pid=7, status=12),
        fault("nccl_error", 4.5, pid=7, rank=8),
        fault("process_death", 5.0, pid=8),
    ]

    def told(order: list[Fault]) -> list[Event]:
        node = Node()
        node.job(1.0)
        return node.read(6.0, *order)

    assert told(lines) == told(lines[::-1])


def test_faults_read_between_ticks_are_in_the_checkpoint() -> None:
    node = Node()
    node.take(FaultRead(fault("transport_error", 4.0, pid=7), ns(5.0)))
    node.restart()

    assert len(of(Fault, node.tick(6.0))) == 1


def test_reads_of_the_witness_alone_say_that_the_fast_counter_was_read() -> None:
    node = Node()
    node.job(0.0)
    node.take(*samples([(0.0, 1e9)], LEARN))
    idle = [
        Sample(key, ns(LEARN + at / 10), ns(LEARN + at / 10), READ_WITNESS)
        for at in range(1, 100)
        for key in KEYS
    ]

    node.take(*idle)

    (stall,) = node.last(Stall)
    assert stall.begin_ns == pytest.approx(ns(LEARN), abs=ns(0.3))


def test_traffic_that_only_the_slow_tier_tells_of_is_followed_at_its_pace() -> None:
    port = Port("guid-5/1", "irdma0", 1, "Ethernet", driver="irdma", witnesses=())
    name = "hw_counters/ip4OutOctets"
    node = Node()
    node.take(PortSeen(port, 0))
    node.job(0.0, ports={port.key: "queue_pair"})
    for at in range(200):
        reads = READ_SLOW | (READ_FIRST if at == 0 else 0)
        node.take(Sample(port.key, ns(at / 2), ns(at / 2), reads, {name: at << 33}))
        node.take(Sample(port.key, ns(at / 2 + 0.1), ns(at / 2 + 0.1), READ_STATE))
    assert SENT not in node.engine.checkpoint()["jobs"].decode("latin-1")

    node.take(*(Sample(port.key, ns(at / 2), ns(at / 2), READ_SLOW) for at in range(200, 220)))

    (stall,) = node.last(Stall)
    assert stall.begin_ns == pytest.approx(ns(99.5), abs=ns(0.6))


STALLED = samples(
    stalled(list(bursts(LEARN + 30)), [(LEARN + 2, 4.3), (LEARN + 15, 6.0)]),
    LEARN + 30,
    downs=[(KEYS[1], LEARN + 2)],
)


@settings(max_examples=8)
@given(st.lists(st.floats(0.9, 1.0), max_size=4))
def test_restarts_while_traffic_stands_still_change_nothing(shares: list[float]) -> None:
    unbroken, broken = Node(), Node()
    for node in (unbroken, broken):
        node.job(0.0)
    unbroken.take(*STALLED)

    begin = 0
    for end in sorted(round(share * len(STALLED)) for share in shares):
        broken.take(*STALLED[begin:end])
        broken.restart()
        begin = end
    broken.take(*STALLED[begin:])

    assert broken.told == unbroken.told
    assert len(broken.last(Stall)) == 2
    assert broken.view == unbroken.view


def test_a_job_says_since_when_a_stall_of_it_would_have_been_seen() -> None:
    node = Node()
    node.job(0.0)
    node.take(*STALLED)

    (job,) = node.last(Job)
    assert job.stalls_seen_since_unix_ns == pytest.approx(unix(90.0), abs=ns(30.0))
    assert job.shortest_stall_seconds == pytest.approx(2.5, abs=1.5)

    node.tick(LEARN + 60)

    (job,) = node.last(Job)
    assert (job.stalls_seen_since_unix_ns, job.shortest_stall_seconds) == (None, None)
