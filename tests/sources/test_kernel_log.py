"""A pipe in packet mode gives a record a read, as /dev/kmsg does."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from flapd.model.observation import KernelLine
from flapd.sources.kernel_log import MOST_AT_ONCE, KernelLog, StampClock, why_no_kernel_log

SECOND_NS = 1_000_000_000
DOWN = "mlx5_core 0000:05:00.0 eth2: Link down"


class Kernel:
    """Prints records, and has two clocks."""

    def __init__(self) -> None:
        self.raw_ns = 1000 * SECOND_NS
        self.monotonic_ns = 1001 * SECOND_NS
        reading, self._fd = os.pipe2(os.O_DIRECT)
        fcntl.fcntl(self._fd, fcntl.F_SETPIPE_SZ, 1 << 20)
        self.log = KernelLog(
            Path(f"/proc/self/fd/{reading}"), lambda: (self.raw_ns, self.monotonic_ns)
        )
        os.close(reading)
        self._sequence = 0

    def prints(self, text: str, stamp_ns: int = 0, facility: int = 0, skipped: int = 0) -> None:
        self._sequence += 1 + skipped
        head = f"{facility << 3 | 6},{self._sequence},{stamp_ns // 1000},-"
        os.write(self._fd, f"{head};{text}\n SUBSYSTEM=pci\n".encode())

    def close(self) -> None:
        os.close(self._fd)
        self.log.close()


@contextmanager
def kernel() -> Iterator[Kernel]:
    printing = Kernel()
    try:
        yield printing
    finally:
        printing.close()


def test_lines_of_links_come_in_order_and_others_do_not() -> None:
    with kernel() as printing:
        printing.prints("systemd[1]: hello")
        printing.prints(DOWN)
        printing.prints("infiniband rxe0: set active")

        hints = printing.log.read()
        assert printing.log.read() == []

    assert [hint.line for hint in hints] == [
        KernelLine("link_down", None, "0000:05:00.0", "eth2"),
        KernelLine("link_up", None, device="rxe0"),
    ]


def test_what_a_process_wrote_into_the_log_is_not_believed() -> None:
    with kernel() as printing:
        printing.prints(DOWN, facility=1)

        assert printing.log.read() == []


def test_a_line_that_waited_is_dated_back_by_its_stamp_and_never_past_its_reading() -> None:
    with kernel() as printing:
        printing.prints(DOWN, stamp_ns=900 * SECOND_NS)
        (prompt,) = printing.log.read()
        printing.prints(DOWN, stamp_ns=901 * SECOND_NS)
        printing.raw_ns += 5 * SECOND_NS
        printing.monotonic_ns += 5 * SECOND_NS
        (waited,) = printing.log.read()

    assert prompt.logged_ns == prompt.received_ns
    assert waited.received_ns - waited.logged_ns == 4 * SECOND_NS - 5 * SECOND_NS // 100_000


def test_records_that_were_overwritten_are_counted() -> None:
    with kernel() as printing:
        printing.prints(DOWN)
        printing.log.read()
        printing.prints(DOWN, skipped=41)

        assert len(printing.log.read()) == 1
        assert printing.log.lost == 41


def test_a_kernel_that_prints_without_end_is_read_in_parts() -> None:
    with kernel() as printing:
        for _ in range(MOST_AT_ONCE):
            printing.prints("noise")
        printing.prints(DOWN)

        assert printing.log.read() == []
        assert len(printing.log.read()) == 1


def test_what_is_no_record_is_left() -> None:
    with kernel() as printing:
        os.write(printing._fd, b"\xff\x00 no record")
        printing.prints(DOWN)

        assert len(printing.log.read()) == 1


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1, max_size=20))
def test_no_line_is_ever_dated_before_it_was_printed_or_after_it_was_read(
    steps: list[tuple[int, int]],
) -> None:
    """Lines printed and read at any times; the log's clock has another zero, and counts alike."""
    clock, zero_ns, raw_ns, steered_ns = StampClock(), 77_777, 10**9, 123_456
    for pause_ns, delay_ns in steps:
        printed_ns = raw_ns + pause_ns
        raw_ns = printed_ns + delay_ns

        latest_ns = clock.latest_ns(printed_ns - zero_ns, raw_ns, raw_ns + steered_ns)

        assert printed_ns + steered_ns <= latest_ns <= raw_ns + steered_ns


def test_a_log_that_is_not_there_says_why(tmp_path: Path) -> None:
    assert why_no_kernel_log(Path("/sys"), tmp_path) == f"{tmp_path}/kmsg: ENOENT"


def test_the_log_of_a_simulated_node_belongs_to_it_and_that_of_the_kernel_does_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "kmsg").touch()

    assert why_no_kernel_log(tmp_path, tmp_path) is None
    assert why_no_kernel_log(tmp_path, Path("/dev")) is not None
