import os
import threading
from pathlib import Path

import pytest

from flapd.model.errors import FlapdError
from flapd.store.lock import DirectoryLock


def test_the_second_agent_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path / "state", "paths.state")

    with pytest.raises(FlapdError, match=f"process {os.getpid()}"):
        DirectoryLock(tmp_path / "state", "paths.state", wait_seconds=0)

    lock.close()
    DirectoryLock(tmp_path / "state", "paths.state", wait_seconds=0).close()


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FlapdError, match=r"paths\.state: .*file/state"):
        DirectoryLock(tmp_path / "file/state", "paths.state")


def test_a_second_agent_waits_until_the_first_lets_go(tmp_path: Path) -> None:
    first = DirectoryLock(tmp_path, "paths.state")
    waiting = threading.Event()
    held: list[DirectoryLock] = []

    def wait() -> None:
        waiting.set()
        held.append(DirectoryLock(tmp_path, "paths.state", wait_seconds=60))

    second = threading.Thread(target=wait)
    second.start()
    waiting.wait()
    assert held == []
    first.close()
    second.join()

    held[0].close()
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
