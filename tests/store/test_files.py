import os
from pathlib import Path

import pytest

from flapd.store.files import is_volatile


def mounts(directory: Path, kind: str) -> Path:
    """A mount table in which this directory lies on a file system of this kind."""
    device = directory.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    path = directory / "mountinfo"
    path.write_text(
        "22 1 250:9 / /other rw,relatime shared:1 - tmpfs tmpfs rw\n"
        f"23 1 {number} / / rw,relatime shared:2 master:1 - {kind} /dev/x rw\n"
    )
    return path


@pytest.mark.parametrize(
    ("kind", "volatile"),
    [("tmpfs", True), ("ramfs", True), ("overlay", True), ("ext4", False), ("xfs", False)],
)
def test_memory_and_a_containers_layer_do_not_last(
    tmp_path: Path, kind: str, volatile: bool
) -> None:
    assert is_volatile(tmp_path, mounts(tmp_path, kind)) is volatile


def test_what_cannot_be_told_is_not_warned_of(tmp_path: Path) -> None:
    (tmp_path / "odd").write_text("\nno mount\n")

    assert not is_volatile(tmp_path, tmp_path / "absent")
    assert not is_volatile(tmp_path, tmp_path / "odd")


def test_shared_memory_of_this_machine_is_volatile() -> None:
    assert is_volatile(Path("/dev/shm"))
