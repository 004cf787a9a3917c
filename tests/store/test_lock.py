import os
from pathlib import Path

import pytest

from flapd.model.errors import FlapdError
from flapd.store.lock import StateLock


def test_the_second_agent_is_told_who_holds_the_lock(tmp_path: Path) -> None:
    lock = StateLock(tmp_path / "state")

    with pytest.raises(FlapdError, match=f"process {os.getpid()}"):
        StateLock(tmp_path / "state", wait_seconds=0)

    lock.close()
    StateLock(tmp_path / "state", wait_seconds=0).close()


def test_a_state_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(FlapdError, match=r"file/state .*paths\.state"):
        StateLock(tmp_path / "file/state")
