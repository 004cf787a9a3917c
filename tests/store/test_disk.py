"""A disk that is full or takes nothing: what was not committed is said, and can be tried again."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]

SMALL_FILES = """
    import resource, sys
    from pathlib import Path
    from flapd.store.history import HistoryError, open_history
    from flapd.store.history_reader import HistoryReader
    from tests.store.outages import outage

    path = Path(sys.argv[1])
    history, _ = open_history(path, 30 * 10**9)
    history.commit([outage("before")], {"number": b"0"})
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, resource.RLIM_INFINITY))
    number = refused = 0
    while refused < 3:
        events = [outage(f"{number}-{n}") for n in range(20)]
        try:
            history.commit(events, {"number": str(number).encode()})
            number += 1
        except HistoryError as error:
            refused += 1
    assert number > 0
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
    reader = HistoryReader(path)
    assert reader.last_seq() == 1 + 20 * number
    history.commit(events, {"number": str(number).encode()})
    history.check()
    seen = [event.id for _seq, event in reader.events_after(0, 10**6)]
    assert seen == ["before", *(f"{m}-{n}" for m in range(number + 1) for n in range(20))]
    print("all there")
"""

SMALL_DISK = """
    import sys
    from pathlib import Path
    from flapd.store.history import HistoryError, open_history
    from flapd.store.history_reader import HistoryReader
    from tests.store.outages import outage

    path = Path(sys.argv[1]) / "history.sqlite"
    history, _ = open_history(path, 30 * 10**9)
    filler = path.with_name("filler")
    filler.write_bytes(bytes(500_000))
    number = refused = 0
    while refused < 3:
        events = [outage(f"{number}-{n}") for n in range(20)]
        try:
            history.commit(events, {"number": str(number).encode()})
            number += 1
        except HistoryError as error:
            assert "full" in str(error) or "I/O" in str(error), error
            refused += 1
    filler.unlink()
    history.commit(events, {"number": str(number).encode()})
    history.check()
    reader = HistoryReader(path)
    assert reader.last_seq() == 20 * (number + 1)
    assert history.checkpoint() == {"number": str(number).encode()}
    print("all there")
"""

READ_ONLY = """
    import subprocess, sys
    from pathlib import Path
    from flapd.model.errors import FlapdError
    from flapd.store.history import HistoryError, open_history
    from flapd.store.history_reader import HistoryReader
    from flapd.store.lock import DirectoryLock
    from tests.store.outages import outage

    directory = Path(sys.argv[1])
    path = directory / "history.sqlite"
    DirectoryLock(directory, "paths.state").close()
    history, _ = open_history(path)
    history.commit([outage("a")], {})
    history.close()
    subprocess.run(["mount", "-o", "remount,ro", str(directory)], check=True)

    def refusal(do):
        try:
            do()
        except FlapdError as error:
            return str(error)
        return "none"

    print(refusal(lambda: DirectoryLock(directory, "paths.state")))
    print(refusal(lambda: open_history(path)))
"""


def run(script: str, path: Path) -> list[str]:
    command = [sys.executable, "-c", textwrap.dedent(script), str(path)]
    return lines_of(command)


def lines_of(command: list[str]) -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


def on_tmpfs(script: str, directory: Path) -> list[str]:
    """Runs it with `directory` on a memory file system of 1 MiB that it alone sees."""
    inside = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'
    shell = ["sh", "-c", inside, "sh", str(directory), sys.executable, textwrap.dedent(script)]
    return lines_of(["unshare", "--mount", "--map-root-user", *shell])


def may_mount() -> bool:
    probe = ["unshare", "--mount", "--map-root-user", "mount", "-t", "tmpfs", "none", "/mnt"]
    return subprocess.run(probe, capture_output=True, check=False).returncode == 0


needs_mount = pytest.mark.skipif(not may_mount(), reason="nothing may be mounted here")


def test_files_that_may_not_grow_lose_nothing_once_they_may_again(tmp_path: Path) -> None:
    assert run(SMALL_FILES, tmp_path / "history.sqlite") == ["all there"]


@needs_mount
def test_a_full_disk_loses_nothing_once_there_is_space_again(tmp_path: Path) -> None:
    assert on_tmpfs(SMALL_DISK, tmp_path) == ["all there"]


@needs_mount
def test_a_state_directory_that_is_read_only_is_refused_at_the_start_in_one_sentence(
    tmp_path: Path,
) -> None:
    lock, history = on_tmpfs(READ_ONLY, tmp_path)

    assert lock == f"paths.state: {tmp_path} cannot be written: Read-only file system"
    assert history.startswith(f"history {tmp_path}/history.sqlite: ")
