"""The mounted fabric, as a reader sees it through the kernel."""

import contextlib
import errno
import os
import select
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import msgspec
import pytest

from simulators.fabric.mount import fuse_missing
from simulators.fabric.schedule import Flap
from simulators.fabric.spec import Fault, Spec, two_ports
from tests.simulators.fabric.running import REPOSITORY, Start

pytestmark = pytest.mark.skipif(fuse_missing() is not None, reason=str(fuse_missing()))

HANGING = "class/infiniband/mlx5_0/ports/1/hw_counters/packet_seq_err"
STATE = "class/infiniband/mlx5_0/ports/1/state"


def open_file(path: Path) -> int:
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def with_fault(fault: Fault) -> Spec:
    return Spec(two_ports().ports, (fault,))


def is_mounted(root: Path) -> bool:
    return str(root) in Path("/proc/self/mounts").read_text()


def test_a_kept_descriptor_sees_both_edges_when_they_happen(start: Start) -> None:
    running = start(two_ports((Flap(0.2, 0.2),)), "--origin-in", "0.1")
    outage = running.truth.outages[0]
    descriptor = open_file(running.root / STATE)
    unsure = 0

    while time.monotonic_ns() < outage.up_monotonic_ns + 50_000_000:
        before_ns = time.monotonic_ns()
        content = os.pread(descriptor, 4096, 0)
        after_ns = time.monotonic_ns()
        down = [
            outage.down_monotonic_ns <= t < outage.up_monotonic_ns for t in (before_ns, after_ns)
        ]
        if down[0] == down[1]:
            assert content == (b"1: DOWN\n" if down[0] else b"4: ACTIVE\n")
        else:
            unsure += 1
    os.close(descriptor)

    assert unsure <= 2


def test_the_tree_reads_like_sys_through_its_links(start: Start) -> None:
    root = start(two_ports()).root
    device = root / "class/infiniband/mlx5_1"

    assert (device / "device/net/eth2/carrier").read_text() == "1\n"
    assert (device / "device/driver").resolve().name == "mlx5_core"
    assert sorted(path.name for path in (root / "class/net").iterdir()) == ["eth2", "ib0"]
    assert (device / "ports/1/state").stat().st_size == 4096
    with pytest.raises(OSError) as caught:
        (device / "ports/1/gid_attrs/ndevs/9").read_text()
    assert caught.value.errno == errno.EINVAL


def test_the_tree_cannot_be_written(start: Start) -> None:
    with pytest.raises(OSError) as caught:
        (start(two_ports()).root / "class/new").mkdir()

    assert caught.value.errno == errno.EROFS


def test_an_errno_fault_reaches_the_reader(start: Start) -> None:
    fault = Fault(f"/{STATE}", "errno", 0, 1000, "ETIMEDOUT")

    with pytest.raises(TimeoutError):
        (start(with_fault(fault)).root / STATE).read_text()


def test_a_hanging_read_returns_at_the_end_of_its_fault(start: Start) -> None:
    running = start(with_fault(Fault(f"/{HANGING}", "hang", -1, 0.5)))

    content = (running.root / HANGING).read_text()

    assert content == "0\n"
    assert time.monotonic_ns() >= running.truth.origin_monotonic_ns + 500_000_000


def test_twenty_hanging_reads_do_not_delay_reads_of_other_files(start: Start) -> None:
    running = start(with_fault(Fault(f"/{HANGING}", "hang", -1, 1)))
    readers = [
        threading.Thread(target=(running.root / HANGING).read_text, daemon=True) for _ in range(20)
    ]
    for reader in readers:
        reader.start()
    descriptor = open_file(running.root / STATE)
    reads = 0

    while time.monotonic_ns() < running.truth.origin_monotonic_ns + 900_000_000:
        assert os.pread(descriptor, 4096, 0) == b"4: ACTIVE\n"
        reads += 1
    alive = sum(reader.is_alive() for reader in readers)
    for reader in readers:
        reader.join()
    os.close(descriptor)

    assert alive == 20
    assert reads > 100


def test_sigterm_ends_it_and_the_mount(start: Start) -> None:
    running = start(two_ports())
    assert is_mounted(running.root)

    assert running.end() == 0
    assert not is_mounted(running.root)
    assert list(running.root.iterdir()) == []


def test_sigterm_ends_it_while_a_descriptor_is_kept(start: Start) -> None:
    running = start(two_ports())
    descriptor = open_file(running.root / STATE)

    assert running.end() == 0
    assert not is_mounted(running.root)
    with pytest.raises(OSError):
        os.pread(descriptor, 4096, 0)
    with contextlib.suppress(OSError):
        os.close(descriptor)


def test_sigterm_ends_it_and_its_reader_while_a_read_hangs(start: Start) -> None:
    running = start(with_fault(Fault(f"/{HANGING}", "hang", -1, 1000)))
    reader = subprocess.Popen(
        [
            sys.executable,
            "-c",
            f"print('reading', flush=True); open({str(running.root / HANGING)!r}).read()",
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert reader.stdout is not None
    assert reader.stdout.readline() == "reading\n"
    assert select.select([reader.stdout], [], [], 0.2)[0] == []

    assert running.end() == 0
    assert not is_mounted(running.root)
    _, told = reader.communicate(timeout=20)
    assert reader.returncode == 1
    assert "OSError" in told


def test_the_end_of_stdin_ends_it_where_asked(start: Start) -> None:
    running = start(two_ports(), "--until-eof")

    stdin = running.process.stdin
    assert stdin is not None
    stdin.close()

    assert running.process.wait(timeout=20) == 0
    assert not is_mounted(running.root)


def test_unmounted_by_somebody_else_it_ends(start: Start) -> None:
    running = start(two_ports())

    subprocess.run(["fusermount3", "-u", str(running.root)], check=True)

    assert running.process.wait(timeout=20) == 0


@pytest.mark.parametrize(
    ("prefix", "path", "said"),
    [
        ((), "/nowhere", "fusermount3 is not installed"),
        (("setpriv", "--bounding-set", "-sys_admin"), os.environ["PATH"], "no CAP_SYS_ADMIN"),
    ],
)
def test_where_fuse_cannot_work_one_sentence_says_why(
    tmp_path: Path, prefix: tuple[str, ...], path: str, said: str
) -> None:
    if prefix and (os.geteuid() != 0 or shutil.which(prefix[0]) is None):
        pytest.skip("taking a capability away needs root and setpriv")
    (tmp_path / "spec.json").write_bytes(msgspec.json.encode(two_ports()))
    places = ["--spec", tmp_path / "spec.json", "--mount", tmp_path / "sys", "--truth", "truth"]

    ended = subprocess.run(
        [*prefix, sys.executable, "-m", "simulators.fabric", *map(str, places)],
        cwd=REPOSITORY,
        env={"PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode == 2
    assert said in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_killed_it_leaves_no_stale_mount(start: Start) -> None:
    running = start(two_ports())
    running.process.kill()
    running.process.wait(timeout=20)
    deadline = time.monotonic() + 20

    while is_mounted(running.root):
        assert time.monotonic() < deadline
    assert list(running.root.iterdir()) == []
