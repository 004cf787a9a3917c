"""Glances: fast sweeps of a link at rest, read now and worked out later."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flapd.model.observation import READ_FIRST, READ_STATE, READ_WITNESS, Sample
from flapd.model.port import Port
from flapd.model.times import MILLISECOND_NS, SECOND_NS
from flapd.sources.glances import KEPT_NS
from tests.sources.port_bench import IB_FILES, Bench, settle

PORT = Port("guid/1", "mlx5_0", 1, "InfiniBand", witnesses=("counters/link_downed",))
TICK_NS = 100 * MILLISECOND_NS


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = at_rest(tmp_path)
    assert bench.reader.glance()
    worked_out(bench)
    return bench


def at_rest(directory: Path) -> Bench:
    """A port whose last fast sweep found that nothing happened for a minute."""
    bench = Bench(directory, PORT, IB_FILES)
    settle(bench)
    bench.told("fast")
    return bench


def worked_out(bench: Bench) -> list[Sample]:
    found = []
    for sweep in bench.reader.glanced():
        found.append(bench.reader.sample(sweep))
        bench.reader.sent()
    return found


def fast(bench: Bench) -> list[Sample]:
    """A fast sweep by a glance, where that is enough."""
    if bench.reader.glance():
        return []
    return [*worked_out(bench), bench.told("fast")]


def test_glances_are_worked_out_once_each_as_the_sweep_it_was(bench: Bench) -> None:
    began_ns = bench.now_ns
    for traffic in ("2000\n", "2000\n", "3000\n"):
        bench.write("counters/port_xmit_data", traffic)
        assert bench.reader.glance()

    told = worked_out(bench)

    assert [sample.values for sample in told] == [
        {"counters/port_xmit_data": 2000},
        {},
        {"counters/port_xmit_data": 3000},
    ]
    assert [sample.before_ns - began_ns for sample in told] == [
        number * MILLISECOND_NS for number in (1, 3, 5)
    ]
    assert {sample.reads for sample in told} == {READ_WITNESS}
    assert worked_out(bench) == []


@pytest.mark.parametrize(
    ("name", "content"), [("counters/link_downed", "18\n"), ("counters/link_downed", "")]
)
def test_what_moves_on_the_link_takes_a_whole_sweep(bench: Bench, name: str, content: str) -> None:
    bench.write(name, content)

    assert not bench.reader.glance()
    assert bench.told("fast").reads & READ_STATE
    assert not bench.reader.glance(), "a link that moved is looked at closely"


@pytest.mark.parametrize("name", ["counters/link_downed", "counters/port_xmit_data"])
def test_a_file_that_fails_takes_a_whole_sweep_which_says_so(bench: Bench, name: str) -> None:
    bench.break_file(name)

    assert not bench.reader.glance()
    assert name in bench.told("fast").errors
    assert not bench.reader.glance()


def test_a_glance_at_what_is_no_number_says_so_and_the_next_that_it_is_one_again(
    bench: Bench,
) -> None:
    for content in ("N/A (no PMA)\n", "2000\n"):
        bench.write("counters/port_xmit_data", content)
        assert bench.reader.glance()

    told = worked_out(bench)

    assert list(told[0].errors) == ["counters/port_xmit_data"]
    assert (told[1].values, told[1].errors) == ({"counters/port_xmit_data": 2000}, {})
    assert bench.told("fast").errors == {}
    assert bench.reader.glance()


def test_a_link_that_was_found_down_by_a_slow_sweep_is_not_glanced_at(bench: Bench) -> None:
    bench.write("state", "1: DOWN\n")
    bench.told("slow")

    assert not bench.reader.glance()


def test_a_link_is_glanced_at_again_a_minute_after_it_moved(bench: Bench) -> None:
    bench.write("counters/link_downed", "18\n")
    bench.told("fast")
    bench.now_ns += 61 * SECOND_NS
    assert not bench.reader.glance()

    bench.told("fast")

    assert bench.reader.glance()


def test_a_port_whose_witness_counts_no_further_is_not_glanced_at(bench: Bench) -> None:
    bench.write("counters/link_downed", "255\n")
    bench.told("fast")
    bench.now_ns += 61 * SECOND_NS
    bench.told("fast")

    assert not bench.reader.glance()


def test_a_port_that_nobody_was_told_of_is_not_glanced_at(tmp_path: Path) -> None:
    bench = Bench(tmp_path, PORT, IB_FILES)
    assert bench.sweep("fast").reads & READ_FIRST

    assert not bench.reader.glance()


def test_glances_are_not_kept_for_longer_than_half_a_second(bench: Bench) -> None:
    assert bench.reader.glance()
    bench.now_ns += KEPT_NS

    assert not bench.reader.glance()
    assert len(worked_out(bench)) == 1


WRITES = st.one_of(
    st.tuples(st.just("counters/port_xmit_data"), st.sampled_from(["1000\n", "1001\n", "1002\n"])),
    st.tuples(st.just("counters/link_downed"), st.sampled_from(["17\n", "18\n", "255\n"])),
    st.tuples(st.just("state"), st.sampled_from(["4: ACTIVE\n", "1: DOWN\n"])),
    st.tuples(st.just("counters/symbol_error"), st.sampled_from(["2\n", "3\n"])),
)


PAUSES = st.sampled_from([1, 1, 1, 1, 1, 1, 1, 1, 2, 7, 650])
"""Ticks: mostly the next one; after the last of these a link that moved is at rest again."""


@given(st.lists(st.tuples(PAUSES, st.lists(WRITES, max_size=2)), max_size=60))
def test_who_glances_tells_the_same_as_who_sweeps_each_time(
    ticks: list[tuple[int, list[tuple[str, str]]]],
) -> None:
    with TemporaryDirectory() as one, TemporaryDirectory() as other:
        glancing, sweeping = at_rest(Path(one)), at_rest(Path(other))
        by_glances: list[Sample] = []
        by_sweeps: list[Sample] = []
        at = 1000
        for number, (pause, writes) in enumerate(ticks):
            at += pause
            glancing.now_ns = sweeping.now_ns = at * TICK_NS
            for name, content in writes:
                glancing.write(name, content)
                sweeping.write(name, content)
            by_glances += fast(glancing)
            by_sweeps.append(sweeping.told("fast"))
            if number % 5 == 4:
                by_glances += [*worked_out(glancing), glancing.told("slow")]
                by_sweeps.append(sweeping.told("slow"))
        by_glances += worked_out(glancing)
        glancing.reader.close()
        sweeping.reader.close()

    assert [gist(sample) for sample in by_glances] == [gist(sample) for sample in by_sweeps]
    assert glancing.reader.values == sweeping.reader.values


def gist(sample: Sample) -> tuple[int, int, dict[str, int], dict[str, str]]:
    """All but the milliseconds: a whole sweep after a glance looks at the clock once more."""
    return sample.before_ns // TICK_NS, sample.reads, sample.values, sample.errors
