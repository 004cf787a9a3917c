"""What one descriptor reads, without a kernel in between."""

import errno
import stat
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from simulators.errors import SimulatorError
from simulators.fabric.changes import Gone
from simulators.fabric.faults import fault_windows
from simulators.fabric.operations import Operations
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Fault, Spec, two_ports
from simulators.fabric.tree import epochs, simulated_ports

SECOND_NS = 1_000_000_000
PORT = "/devices/pci0000:3a/0000:3a:00.0/0000:3b:00.0/infiniband/mlx5_0/ports/1"


@dataclass
class Info:
    fh: int = 0
    direct_io: int = 0


@dataclass
class Clock:
    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns


def operations(spec: Spec, clock: Callable[[], int]) -> Operations:
    trees = epochs(simulated_ports(spec, 0, 0))
    windows = fault_windows(spec.faults, [epoch.tree for epoch in trees], 0)
    return Operations(trees, windows, clock)


def opened(fabric: Operations, path: str) -> Info:
    info = Info()
    fabric.open(path, info)
    return info


def test_each_read_at_offset_0_shows_anew_and_one_past_the_end_shows_nothing() -> None:
    clock = Clock()
    fabric = operations(two_ports((Flap(1, 1),)), clock)
    state = opened(fabric, f"{PORT}/state")

    first = fabric.read("", 4096, 0, state)
    clock.now_ns = SECOND_NS
    past = fabric.read("", 4096, len(first), state)
    second = fabric.read("", 4096, 0, state)

    assert (first, past, second) == (b"4: ACTIVE\n", b"", b"1: DOWN\n")


def test_a_counter_that_grows_by_a_digit_leaves_no_stray_digit_to_the_next_read() -> None:
    clock = Clock(1)
    fabric = operations(two_ports(), clock)
    data = opened(fabric, f"{PORT}/counters/port_xmit_data")

    first = fabric.read("", 4096, 0, data)
    clock.now_ns = 100 * SECOND_NS

    assert fabric.read("", 4096, len(first), data) == b""


def test_a_read_in_small_pieces_gives_one_whole_content() -> None:
    clock = Clock()
    fabric = operations(two_ports(), clock)
    state = opened(fabric, f"{PORT}/state")

    pieces = b""
    while piece := fabric.read("", 3, len(pieces), state):
        pieces += piece
        clock.now_ns += SECOND_NS

    assert pieces == b"4: ACTIVE\n"


def test_files_bypass_the_page_cache_and_look_like_sysfs_to_stat() -> None:
    fabric = operations(two_ports(), Clock())
    attributes = fabric.getattr(f"{PORT}/state")

    assert opened(fabric, f"{PORT}/state").direct_io
    assert attributes["st_size"] == 4096
    assert stat.S_ISREG(attributes["st_mode"])


def test_what_is_not_in_the_tree_does_not_exist() -> None:
    with pytest.raises(FileNotFoundError):
        operations(two_ports(), Clock()).getattr("/class/nothing")


@pytest.mark.parametrize("path", ["/class/infiniband/mlx5_0/ports/1/state", f"{PORT}/st*"])
def test_a_fault_is_found_by_either_name_of_a_file_and_lasts_its_time(path: str) -> None:
    clock = Clock()
    fault = Fault(path, "errno", 1, 2, "ENODEV")
    fabric = operations(Spec(two_ports().ports, (fault,)), clock)
    state = opened(fabric, f"{PORT}/state")
    seen: list[bytes | int | None] = []

    for clock.now_ns in (SECOND_NS - 1, SECOND_NS, 2 * SECOND_NS - 1, 2 * SECOND_NS):
        try:
            seen.append(fabric.read("", 4096, 0, state))
        except OSError as error:
            seen.append(error.errno)

    assert seen == [b"4: ACTIVE\n", errno.ENODEV, errno.ENODEV, b"4: ACTIVE\n"]


def test_a_text_is_shown_instead_of_a_value_for_its_time() -> None:
    clock = Clock()
    fault = Fault(f"{PORT}/counters/*", "text", 1, 2)
    fabric = operations(Spec(two_ports().ports, (fault,)), clock)
    downed = opened(fabric, f"{PORT}/counters/link_downed")
    seen = []

    for clock.now_ns in (0, SECOND_NS, 2 * SECOND_NS):
        seen.append(fabric.read("", 4096, 0, downed))

    assert seen == [b"0\n", b"N/A (no PMA)\n", b"0\n"]


def test_a_text_may_be_empty_or_no_text_at_all() -> None:
    texts = ["", "-1\n", "12 34\n", "\0\xff", "9" * 5000]
    for text in texts:
        fault = Fault(f"{PORT}/state", "text", text=text)
        fabric = operations(Spec(two_ports().ports, (fault,)), Clock())

        shown = fabric.read("", 4096, 0, opened(fabric, f"{PORT}/state"))

        assert shown == text.encode()[:4096]


def test_a_slow_read_shows_what_is_true_when_it_ends() -> None:
    fault = Fault(f"{PORT}/state", "slow", delay_seconds=0.001)
    spec = Spec(two_ports((Flap(1, 1),)).ports, (fault,))
    at_open, at_begin, at_end = 0, SECOND_NS - 1, SECOND_NS
    fabric = operations(spec, iter((at_open, at_begin, at_end)).__next__)

    shown = fabric.read("", 4096, 0, opened(fabric, f"{PORT}/state"))

    assert shown == b"1: DOWN\n"


def test_a_read_that_hangs_over_the_removal_of_its_file_ends_in_an_error() -> None:
    fault = Fault(f"{PORT}/state", "hang", 1, 1.001)
    spec = Spec(two_ports().ports, (fault,), (Gone("mlx5_0", 1.0005),))
    at_open, at_begin, at_end = 0, SECOND_NS, SECOND_NS + 1_000_000
    fabric = operations(spec, iter((at_open, at_begin, at_end)).__next__)
    state = opened(fabric, f"{PORT}/state")

    with pytest.raises(OSError) as caught:
        fabric.read("", 4096, 0, state)

    assert caught.value.errno == errno.ENODEV


def test_a_fault_that_matches_no_file_is_refused() -> None:
    with pytest.raises(SimulatorError, match="'/class/infinband"):
        operations(Spec(two_ports().ports, (Fault("/class/infinband/*", "hang", 0, 1),)), Clock())


def test_a_hang_ends_with_an_error_when_the_file_system_stops() -> None:
    fault = Fault("*/mlx5_0/ports/1/state", "hang", 0, 1000)
    fabric = operations(Spec(two_ports().ports, (fault,)), Clock())
    state = opened(fabric, f"{PORT}/state")
    fabric.stop()

    with pytest.raises(OSError) as caught:
        fabric.read("", 4096, 0, state)

    assert caught.value.errno == errno.ENODEV
