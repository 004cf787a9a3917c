"""What says the same is one fault, whatever the order in which it arrived."""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.job.merge import merged
from flapd.model.fault import Fault
from flapd.model.times import SECOND_NS
from tests.core.job.parts import faults

QUOTED = (
    "NET/IB : Got completion from peer 10.0.0.1<53249> with status=12 opcode=0 len=0 "
    "vendor err 129 (Send)"
)


def event(rank: int, second: int, what: str = "port error", hca: str = "mlx5_0") -> str:
    return (
        f"[2026-11-30 08:32:{second:02}] node01:{14000 + rank}:14780 [0] "
        f"transport/net_ib.cc:199 NCCL WARN NET/IB : {hca}:1 Got async error event: {what}\n"
    )


def test_an_event_that_all_local_ranks_print_is_one_fault() -> None:
    (found,) = merged(faults("".join(event(rank, 11 + rank // 4) for rank in range(8))))

    assert found.repeats == 8
    assert found.hca == "mlx5_0"


def test_another_port_another_event_and_another_time_are_other_faults() -> None:
    text = event(0, 11) + event(0, 12, "port active") + event(0, 11, hca="mlx5_1") + event(0, 20)

    assert [one.repeats for one in merged(faults(text))] == [1, 1, 1, 1]


def test_a_process_that_prints_an_event_twice_saw_two() -> None:
    text = "".join(event(rank, second) for rank in range(8) for second in (11, 12))

    assert [one.repeats for one in merged(faults(text))] == [8, 8]


def test_ports_without_a_name_are_told_apart_by_how_often_each_process_prints() -> None:
    """NCCL up to 2.19 does not say which HCA it is."""
    line = "node01:{}:14780 [0] transport/net_ib.cc:95 NCCL WARN NET/IB : Got async event : {}\n"
    text = "".join(line.format(pid, "port error") for pid in (1, 2, 3) for _ in range(2))
    at = [replace(one, time_ns=5 * SECOND_NS) for one in faults(text)]

    assert [one.repeats for one in merged(at)] == [3, 3]


def test_an_exception_printed_three_times_is_one_fault() -> None:
    what = (
        "[PG ID 0 PG GUID 0(default_pg) Rank 3] {}Watchdog caught collective operation timeout: "
        "WorkNCCL(SeqNum=116, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) "
        "ran for 600026 milliseconds before timing out."
    )
    header = "[rank3]:[E1130 08:{}:11.123456789 ProcessGroupNCCL.cpp:616] "
    terminated = "Process group watchdog thread terminated with exception: [Rank 3] "
    text = (
        header.format(32) + what.format("") + "\n"
        + header.format(33) + what.format(terminated) + "\n"
        + "terminate called after throwing an instance of 'c10::DistBackendError'\n"
        + "  what():  " + what.format(terminated) + "\n"
    )  # fmt: skip

    kinds = [(one.kind, one.repeats) for one in merged(faults(text))]

    assert kinds == [("watchdog_timeout", 3), ("process_death", 1)]


def test_what_pytorch_quotes_adds_its_rank_to_what_nccl_wrote() -> None:
    text = (
        f"[2026-11-30 08:32:11] node01:14003:1 [3] net_ib.cc:1 NCCL WARN {QUOTED}\n"
        "[rank3]:[E1130 08:32:12.1234 ProcessGroupNCCL.cpp:1515] [PG 0 (default_pg) Rank 3] "
        "Process group watchdog thread terminated with exception: NCCL error: remote process "
        "exited or there was a network error, NCCL version 2.20.5\n"
        f"Last error:\n{QUOTED}\n"
    )

    first, _ = merged(faults(text))

    assert (first.kind, first.repeats) == ("transport_error", 2)
    assert (first.host, first.pid, first.rank) == ("node01", 14003, 3)


def test_timeouts_of_several_ranks_stay_apart() -> None:
    line = (
        "[rank{}]:[E1130 08:32:11.1234 ProcessGroupNCCL.cpp:616] [Rank {}] Watchdog caught "
        "collective operation timeout: WorkNCCL(SeqNum=1, OpType=ALLREDUCE, NumelIn=1, "
        "NumelOut=1, Timeout(ms)=600000) ran for 600026 milliseconds before timing out.\n"
    )

    assert len(merged(faults("".join(line.format(rank, rank) for rank in range(8))))) == 8


LINES = [event(rank, second, what) for rank in range(4) for second in (11, 12, 14) for what in
         ("port error", "port active")]  # fmt: skip
SET = faults("".join(LINES))


@given(st.lists(st.sampled_from(SET), unique_by=lambda one: one.id), st.randoms())
def test_the_order_of_arrival_and_second_readers_change_nothing(
    some: list[Fault], chance: object
) -> None:
    shuffled = [*some, *(replace(one, node="other", arrived_ns=None) for one in some[::2])]
    chance.shuffle(shuffled)  # type: ignore[attr-defined]

    found = merged(shuffled)

    assert [replace(one, node="") for one in found] == merged(some)
    assert sum(one.repeats for one in found) == len(some)


def test_a_fault_without_a_time_is_kept() -> None:
    at = [replace(one, time_ns=None) for one in SET[:1]] + SET[2:3]

    assert len(merged(at)) == 2
