from itertools import count
from pathlib import Path

import pytest

from flapd.core.fabric.catalogue import Tier
from flapd.model.observation import (
    READ_CARRIER,
    READ_FIRST,
    READ_STATE,
    READ_WITNESS,
    Sample,
)
from flapd.model.port import Port
from flapd.model.times import SECOND_NS
from flapd.sources.plan import plan_of
from flapd.sources.port_reader import PortReader
from tests.trees import lay_out

IB_FILES = {
    "state": "4: ACTIVE\n",
    "phys_state": "5: LinkUp\n",
    "rate": "400 Gb/sec (4X NDR)\n",
    "counters/link_downed": "17\n",
    "counters/port_xmit_data": "1000\n",
    "counters/symbol_error": "2\n",
    "counters/port_rcv_errors": "0\n",
    "hw_counters/packet_seq_err": "5\n",
    "hw_counters/lifespan": "12\n",
}


class Bench:
    """A port as plain files, its reader, and a clock that goes on a millisecond a look."""

    def __init__(self, root: Path, port: Port, files: dict[str, str]) -> None:
        self.directory = root / "class/infiniband/mlx5_0/ports/1"
        self.netdev = root / "class/net/eth2"
        lay_out(self.directory, files)
        self._ticks = count(0)
        self.now_ns = 0
        self.reader = PortReader(root, port, plan_of(root, port), self._look)

    def _look(self) -> int:
        self.now_ns += 1_000_000
        return self.now_ns

    def sweep(self, tier: Tier, *, closely: bool = False) -> Sample:
        return self.reader.sample(self.reader.sweep(tier, closely=closely))

    def write(self, name: str, content: str) -> None:
        """In place, as the kernel does it: kept descriptors see it."""
        (self.directory / name).write_text(content)


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
    assert slow.reads == READ_STATE
    assert slow.values == {"counters/symbol_error": 2, "hw_counters/packet_seq_err": 5}
    assert rare.reads == 0
    assert rare.values == {
        "rate_mbps": 400_000,
        "width_lanes": 4,
        "counters/port_rcv_errors": 0,
    }


def settle(bench: Bench) -> None:
    """Everything told, and long enough ago that the state is not read closely."""
    for tier in ("fast", "slow", "rare"):
        bench.sweep(tier)
        bench.reader.sent()
    bench.now_ns += 61 * SECOND_NS


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
    assert slow.reads == READ_WITNESS | READ_STATE
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
        netdev="eth2",
        witnesses=("net/carrier_down_count",),
    )
    lay_out(
        tmp_path / "class/net/eth2",
        {"carrier": "1\n", "carrier_down_count": "3\n", "carrier_up_count": "4\n"},
    )
    return Bench(tmp_path, port, {"state": "4: ACTIVE\n", "phys_state": "5: LinkUp\n"})


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
