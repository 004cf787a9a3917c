from itertools import pairwise
from pathlib import Path

import pytest

from flapd.core.fabric.catalogue import Tier
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_RATE,
    READ_SLOW,
    READ_STATE,
    READ_WITNESS,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.plan import commands_per_second
from flapd.sources.port_reader import PortReader
from tests.sources.port_bench import IB_FILES, Bench, settle
from tests.trees import lay_out

ROCE_FILES = {
    "state": "4: ACTIVE\n",
    "phys_state": "5: LinkUp\n",
    "rate": "400 Gb/sec (4X NDR)\n",
}


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    port = Port("guid/1", "mlx5_0", 1, "InfiniBand", witnesses=("counters/link_downed",))
    return Bench(tmp_path, port, IB_FILES)


def test_the_first_sweeps_tell_everything_with_their_stamps(bench: Bench) -> None:
    fast = bench.sweep("fast")
    bench.reader.sent()
    slow = bench.sweep("slow")
    bench.reader.sent()
    rare = bench.sweep("rare")

    assert (fast.before_ns, fast.after_ns) == (1_000_000, 2_000_000)
    assert fast.reads == READ_WITNESS | READ_STATE | READ_FIRST
    assert fast.values == {
        "counters/link_downed": 17,
        "counters/port_xmit_data": 1000,
        "state": 4,
        "phys_state": 5,
    }
    assert slow.reads == READ_STATE | READ_SLOW
    assert slow.values == {"counters/symbol_error": 2, "hw_counters/packet_seq_err": 5}
    assert rare.reads == READ_RATE
    assert rare.values == {
        "rate_mbps": 400_000,
        "width_lanes": 4,
        "counters/port_rcv_errors": 0,
    }


def test_what_did_not_change_is_not_told_again(bench: Bench) -> None:
    settle(bench)

    quiet = bench.sweep("fast")

    assert (quiet.values, quiet.errors, quiet.reads) == ({}, {}, READ_WITNESS)


def test_a_moved_witness_has_the_state_read_in_the_same_sweep_and_closely_after(
    bench: Bench,
) -> None:
    settle(bench)
    bench.write("counters/link_downed", "18\n")
    bench.write("state", "1: DOWN\n")

    moved = bench.sweep("fast")
    bench.reader.sent()
    following = bench.sweep("fast")

    assert moved.values == {"counters/link_downed": 18, "state": 1}
    assert following.reads & READ_STATE


def test_a_port_that_stays_down_has_its_state_read_once_a_second(bench: Bench) -> None:
    settle(bench)
    bench.write("state", "1: DOWN\n")
    bench.reader.sweep("slow")
    bench.now_ns += 61 * SECOND_NS

    assert bench.reader.sweep("fast").reads & READ_STATE
    assert not bench.reader.sweep("fast").reads & READ_STATE
    bench.now_ns += SECOND_NS
    assert bench.reader.sweep("fast").reads & READ_STATE


def test_only_what_tells_of_the_link_is_news_of_it(bench: Bench) -> None:
    settle(bench)
    bench.write("counters/port_xmit_data", "2000\n")
    bench.sweep("fast")
    assert not bench.reader.has_link_news

    bench.write("counters/link_downed", "18\n")
    bench.sweep("fast")
    assert bench.reader.has_link_news
    bench.reader.sent()
    bench.sweep("fast")
    assert not bench.reader.has_link_news


def test_a_file_that_fails_is_news_once(bench: Bench) -> None:
    settle(bench)
    bench.break_file("counters/symbol_error")
    bench.sweep("slow")
    assert bench.reader.has_link_news
    bench.reader.sent()
    bench.sweep("slow")
    assert not bench.reader.has_link_news


def test_what_could_not_be_sent_is_told_with_the_next_sample(bench: Bench) -> None:
    settle(bench)
    bench.write("counters/link_downed", "18\n")
    bench.sweep("fast")
    bench.write("counters/port_xmit_data", "2000\n")

    retold = bench.sweep("fast")

    assert retold.values == {"counters/link_downed": 18, "counters/port_xmit_data": 2000}


def test_sweeps_that_could_not_be_sent_are_spanned_by_the_sample_that_stands_for_them(
    bench: Bench,
) -> None:
    """A down between the first of them and the next sample must not lie before its interval."""
    settle(bench)
    bench.write("counters/link_downed", "18\n")
    unsent = bench.sweep("fast")
    slow = bench.sweep("slow")
    bench.reader.sent()

    assert slow.before_ns == unsent.before_ns < slow.after_ns
    assert slow.reads == READ_WITNESS | READ_STATE | READ_SLOW
    assert slow.values == {"counters/link_downed": 18}
    assert bench.sweep("slow").before_ns > slow.after_ns


def test_a_port_to_be_watched_closely_has_its_state_read_on_every_sweep(bench: Bench) -> None:
    settle(bench)

    assert bench.sweep("fast", closely=True).reads & READ_STATE


def test_a_counter_wider_than_it_can_be_is_not_believed(bench: Bench) -> None:
    settle(bench)
    bench.write("counters/link_downed", "9223372036854775813\n")

    assert bench.sweep("fast").errors == {
        "counters/link_downed": "more than 8 bits: '9223372036854775813\\n'"
    }


def test_a_counter_that_cannot_be_read_says_why_and_its_value_is_gone(bench: Bench) -> None:
    settle(bench)
    bench.write("hw_counters/packet_seq_err", "N/A (no PMA)\n")
    (bench.directory / "counters/symbol_error").unlink()
    bench.reader.close()

    failed = bench.sweep("slow")

    assert failed.errors == {
        "counters/symbol_error": "ENOENT",
        "hw_counters/packet_seq_err": "no PMA",
    }
    assert "counters/symbol_error" not in bench.reader.values


def test_a_counter_that_can_be_read_again_is_told_again(bench: Bench) -> None:
    settle(bench)
    bench.write("counters/symbol_error", "broken\n")
    bench.sweep("slow")
    bench.reader.sent()
    bench.write("counters/symbol_error", "2\n")

    assert bench.sweep("slow").values == {"counters/symbol_error": 2}


def test_an_unreadable_witness_is_not_a_reading_of_it(bench: Bench) -> None:
    settle(bench)
    bench.write("counters/link_downed", "\n")

    assert not bench.sweep("fast").reads & READ_WITNESS


@pytest.fixture
def ethernet(tmp_path: Path) -> Bench:
    port = Port(
        "guid/1",
        "mlx5_0",
        1,
        "Ethernet",
        driver="mlx5_core",
        netdev="eth2",
        witnesses=("net/carrier_down_count",),
    )
    lay_out(
        tmp_path / "class/net/eth2",
        {
            "carrier": "1\n",
            "carrier_down_count": "3\n",
            "carrier_up_count": "4\n",
            "flags": "0x1003\n",
        },
    )
    return Bench(tmp_path, port, ROCE_FILES)


def test_the_carrier_is_read_with_its_counts_at_first_and_then_rarely(ethernet: Bench) -> None:
    first = ethernet.sweep("fast")
    ethernet.reader.sent()

    assert first.reads == READ_WITNESS | READ_CARRIER | READ_FIRST
    assert first.values == {
        "net/carrier_down_count": 3,
        "net/carrier_up_count": 4,
        "net/carrier": 1,
    }
    assert ethernet.sweep("fast").reads == READ_WITNESS
    assert ethernet.sweep("rare").reads & READ_CARRIER


def test_a_carrier_without_a_consistent_reading_claims_nothing(ethernet: Bench) -> None:
    (ethernet.netdev / "carrier").write_text("\n")

    first = ethernet.sweep("fast")

    assert not first.reads & READ_CARRIER
    assert first.errors == {"net/carrier": "not a number: '\\n'"}


def test_flags_are_read_beside_the_carrier_counts_when_these_moved(ethernet: Bench) -> None:
    settle(ethernet)
    ethernet.write("net/flags", "0x1002\n")
    assert "net/flags" not in ethernet.told("fast").values

    ethernet.write("net/carrier_down_count", "4\n")

    assert ethernet.told("fast").values == {"net/carrier_down_count": 4, "net/flags": 0x1002}


def test_flags_that_change_just_after_the_carrier_are_seen_in_the_next_sweep(
    ethernet: Bench,
) -> None:
    """The kernel takes the carrier away first and clears IFF_UP then (net/core/dev.c)."""
    settle(ethernet)
    ethernet.write("net/carrier_down_count", "4\n")
    ethernet.told("fast")
    ethernet.write("net/flags", "0x1002\n")

    assert ethernet.told("fast").values == {"net/flags": 0x1002}


def test_flags_of_a_port_that_stays_down_are_read_on_slow_sweeps(ethernet: Bench) -> None:
    settle(ethernet)
    ethernet.write("net/flags", "0x1002\n")

    assert ethernet.told("slow").values == {"net/flags": 0x1002}


def test_the_netdev_of_an_infiniband_port_says_nothing_of_its_link(tmp_path: Path) -> None:
    lay_out(tmp_path / "class/net/ib0", {"flags": "0x1003\n", "carrier": "1\n"})
    port = Port(
        "guid/1", "mlx5_0", 1, "InfiniBand", netdev="ib0", witnesses=("counters/link_downed",)
    )

    first = Bench(tmp_path, port, IB_FILES).sweep("fast")

    assert not [name for name in first.values if name.startswith("net/")]


def test_a_port_that_came_back_tells_its_rate_in_the_same_sweep(bench: Bench) -> None:
    settle(bench)
    bench.write("state", "1: DOWN\n")
    bench.told("slow")
    bench.write("rate", "200 Gb/sec (2X NDR)\n")
    assert "rate_mbps" not in bench.told("fast").values

    bench.write("state", "4: ACTIVE\n")

    assert bench.told("fast").values == {"state": 4, "rate_mbps": 200_000, "width_lanes": 2}


def test_a_carrier_that_came_back_has_the_rate_read_in_the_same_sweep(ethernet: Bench) -> None:
    settle(ethernet)
    ethernet.write("rate", "200 Gb/sec (2X NDR)\n")
    ethernet.write("net/carrier_down_count", "4\n")
    assert "rate_mbps" not in ethernet.told("fast").values

    ethernet.write("net/carrier_up_count", "5\n")

    assert ethernet.told("fast").values == {
        "net/carrier_up_count": 5,
        "rate_mbps": 200_000,
        "width_lanes": 2,
    }


def test_the_physical_state_of_a_port_that_stays_active_is_read_rarely(bench: Bench) -> None:
    """Each of the two costs five commands of the firmware on mlx5."""
    settle(bench)
    bench.write("phys_state", "6: LinkErrorRecovery\n")

    assert bench.told("slow").values == {}
    assert bench.told("rare").values == {"phys_state": 6}


def test_the_physical_state_is_read_with_a_state_that_changed(bench: Bench) -> None:
    settle(bench)
    bench.write("state", "1: DOWN\n")
    bench.write("phys_state", "2: Polling\n")

    assert bench.told("slow").values == {"state": 1, "phys_state": 2}

    bench.write("phys_state", "4: PortConfigurationTraining\n")
    assert bench.told("slow").values == {"phys_state": 4}


@pytest.fixture
def locking(tmp_path: Path) -> Bench:
    """A port whose driver takes the RTNL lock to tell its state."""
    port = Port(
        "guid/1",
        "bnxt_re0",
        1,
        "Ethernet",
        driver="bnxt_en",
        netdev="eth2",
        witnesses=("net/carrier_down_count",),
    )
    lay_out(
        tmp_path / "class/net/eth2",
        {"carrier": "1\n", "carrier_down_count": "3\n", "carrier_up_count": "4\n"},
    )
    bench = Bench(tmp_path, port, {})
    bench.directory = tmp_path / "class/infiniband/bnxt_re0/ports/1"
    lay_out(bench.directory, ROCE_FILES)
    return bench


def test_a_state_that_takes_the_network_lock_is_read_rarely(locking: Bench) -> None:
    settle(locking)

    assert not locking.told("slow").reads & READ_STATE
    assert locking.told("rare").reads & READ_STATE


def test_a_state_that_takes_the_network_lock_is_read_after_a_movement(locking: Bench) -> None:
    settle(locking)
    locking.write("net/carrier_down_count", "4\n")
    locking.told("fast")

    assert locking.told("slow").reads & READ_STATE
    locking.now_ns += 61 * SECOND_NS
    assert not locking.told("slow").reads & READ_STATE


def test_a_state_is_read_while_the_carrier_is_not_known(locking: Bench) -> None:
    """The kernel does not tell the carrier of a netdev that is switched off: it gives EINVAL."""
    settle(locking)
    locking.write("net/carrier", "\n")
    assert not locking.told("rare").reads & READ_CARRIER

    assert locking.told("slow").reads & READ_STATE
    locking.write("net/carrier", "1\n")
    locking.now_ns += 11 * SECOND_NS
    assert locking.told("slow").reads & READ_CARRIER
    locking.now_ns += 61 * SECOND_NS
    assert not locking.told("slow").reads & READ_STATE


@pytest.fixture
def member(tmp_path: Path) -> Bench:
    port = Port(
        "guid/1/eth2",
        "mlx5_bond_0",
        1,
        "Ethernet",
        driver="mlx5_core",
        netdev="eth2",
        member="eth2",
        witnesses=("net/carrier_down_count",),
    )
    lay_out(
        tmp_path / "class/net/eth2",
        {
            "carrier": "1\n",
            "carrier_down_count": "3\n",
            "carrier_up_count": "4\n",
            "flags": "0x1803\n",
        },
    )
    lay_out(tmp_path / "class/infiniband/mlx5_bond_0/ports/1", IB_FILES)
    return Bench(tmp_path, port, {})


def test_of_a_bonds_member_nothing_but_its_netdev_is_read(member: Bench) -> None:
    for tier in ("fast", "slow", "rare"):
        sample = member.told(tier)
        assert not sample.reads & READ_STATE
        assert not sample.errors

    assert member.reader.values == {
        "net/carrier_down_count": 3,
        "net/carrier_up_count": 4,
        "net/carrier": 1,
        "net/flags": 0x1803,
    }


@pytest.fixture
def never_up(tmp_path: Path) -> Bench:
    port = Port("guid/1", "mlx5_0", 1, "InfiniBand", witnesses=("counters/link_downed",))
    down = {"state": "1: DOWN\n", "phys_state": "2: Polling\n"}
    return Bench(tmp_path, port, IB_FILES | down, known_up=False)


def test_a_port_that_never_was_up_is_only_listed(never_up: Bench) -> None:
    assert never_up.reader.wants("fast")
    first = never_up.told("fast")

    assert first.reads == READ_WITNESS | READ_STATE | READ_FIRST
    assert first.values == {"counters/link_downed": 17, "state": 1, "phys_state": 2}
    assert not never_up.reader.wants("fast")
    assert never_up.reader.wants("slow")
    assert never_up.told("slow").reads == READ_WITNESS | READ_STATE
    assert never_up.told("rare").values == {}
    assert not never_up.reader.was_up


def test_a_listed_port_is_read_every_second_where_slow_sweeps_are_rarer(never_up: Bench) -> None:
    never_up.told("fast")
    never_up.now_ns += SECOND_NS

    assert never_up.reader.wants("fast")
    assert never_up.told("fast").reads == READ_WITNESS | READ_STATE
    assert not never_up.reader.wants("fast")


def test_a_listed_port_that_comes_up_is_read_in_full_from_then_on(never_up: Bench) -> None:
    never_up.told("fast")
    never_up.write("state", "4: ACTIVE\n")
    never_up.write("phys_state", "5: LinkUp\n")

    came_up = never_up.told("slow")

    assert came_up.values == {
        "state": 4,
        "phys_state": 5,
        "rate_mbps": 400_000,
        "width_lanes": 4,
    }
    assert never_up.reader.was_up
    assert never_up.reader.wants("fast")
    assert "counters/port_xmit_data" in never_up.told("fast").values


def test_a_listed_port_whose_witness_counts_was_up(never_up: Bench) -> None:
    """Between two looks at its state it came up and went down again."""
    never_up.told("fast")
    never_up.write("counters/link_downed", "18\n")

    assert never_up.told("slow").values == {"counters/link_downed": 18}
    assert never_up.reader.was_up


def test_a_listed_port_whose_witness_cannot_be_read_was_not_up_for_that(never_up: Bench) -> None:
    never_up.told("fast")
    never_up.write("counters/link_downed", "\n")
    never_up.told("slow")
    never_up.write("counters/link_downed", "17\n")
    never_up.told("slow")

    assert not never_up.reader.was_up


def test_a_member_with_a_carrier_was_up(member: Bench) -> None:
    reader = PortReader(member.reader.port, member.plan, known_up=False)
    reader.sweep("fast")

    assert reader.was_up


def attempts(bench: Bench, tier: Tier, interval_ns: int, seconds: int) -> list[int]:
    """Times in ns, from the first, at which a file that fails was tried."""
    tried, begin_ns = [], bench.now_ns
    while bench.now_ns - begin_ns < seconds * SECOND_NS:
        failures = bench.reader.failures.total()
        at_ns = bench.now_ns
        bench.told(tier)
        if bench.reader.failures.total() > failures:
            tried.append(at_ns - begin_ns)
        bench.now_ns = at_ns + interval_ns
    return tried


def test_what_failed_is_read_at_its_next_turn_and_then_after_growing_pauses(bench: Bench) -> None:
    settle(bench)
    bench.break_file("counters/symbol_error")

    tried = attempts(bench, "slow", SECOND_NS // 2, seconds=600)

    assert tried[:2] == [0, SECOND_NS // 2]
    pauses = [later - earlier for earlier, later in pairwise(tried[1:])]
    assert pauses[:6] == [seconds * SECOND_NS for seconds in (1, 2, 4, 8, 16, 32)]
    assert set(pauses[6:]) == {60 * SECOND_NS}
    assert len(tried) < 20


def test_what_tells_of_the_link_is_tried_every_ten_seconds_at_least(bench: Bench) -> None:
    settle(bench)
    bench.break_file("counters/link_downed")

    tried = attempts(bench, "fast", SECOND_NS // 10, seconds=120)

    longest_ns = max(later - earlier for earlier, later in pairwise(tried))
    assert 9 * SECOND_NS < longest_ns <= 10 * SECOND_NS


def test_a_witness_that_came_back_is_read_on_every_sweep(bench: Bench) -> None:
    settle(bench)
    bench.break_file("counters/link_downed")
    attempts(bench, "fast", SECOND_NS // 10, seconds=20)
    bench.mend_file("counters/link_downed", "18\n")
    bench.now_ns += 10 * SECOND_NS

    assert bench.told("fast").values["counters/link_downed"] == 18
    bench.write("counters/link_downed", "19\n")
    assert bench.told("fast").values["counters/link_downed"] == 19


def test_one_failed_read_costs_one_sweep(bench: Bench) -> None:
    settle(bench)
    bench.break_file("counters/link_downed")
    assert bench.told("fast").errors == {"counters/link_downed": "EISDIR"}
    bench.mend_file("counters/link_downed", "17\n")

    again = bench.told("fast")

    assert again.reads & READ_WITNESS
    assert again.values["counters/link_downed"] == 17


def test_failed_reads_are_counted_by_reason(bench: Bench) -> None:
    settle(bench)
    bench.break_file("counters/symbol_error")
    bench.write("hw_counters/packet_seq_err", "N/A (no PMA)\n")
    for _ in range(2):
        bench.told("slow")

    assert bench.reader.failures == {"EISDIR": 2, "not understood": 2}


def test_a_port_at_rest_costs_what_the_design_allows(tmp_path: Path) -> None:
    port = Port(
        "guid/1",
        "mlx5_0",
        1,
        "InfiniBand",
        driver="mlx5_core",
        witnesses=("counters/link_downed",),
    )
    more = {f"hw_counters/{name}": "0\n" for name in ("rx_write_requests", "out_of_sequence")}
    data = {"counters/port_rcv_data": "0\n", "counters/link_error_recovery": "0\n"}
    reader = Bench(tmp_path, port, IB_FILES | more | data).reader
    intervals_ns: dict[Tier, int] = {
        "fast": SECOND_NS // 10,
        "slow": SECOND_NS // 2,
        "rare": 30 * SECOND_NS,
    }

    def cost(*, closely: bool) -> float:
        files = reader.files_at_rest(closely=closely)
        return sum(commands_per_second(port, files, intervals_ns).values())

    assert 42 <= cost(closely=False) <= 44
    assert 80 <= cost(closely=True) <= 94
