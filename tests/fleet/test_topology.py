"""A topology file is read whole or refused in one sentence."""

import os
from pathlib import Path

import pytest

from flapd.fleet import topology as module
from flapd.fleet.topology import read_topology
from flapd.model.errors import FlapdError


def test_a_file_that_is_right_is_read(tmp_path: Path) -> None:
    file = tmp_path / "topology.csv"
    file.write_text("node1,mlx5_0,1,leaf-1,12\n")

    assert str(read_topology(file).peer_of("node1", "mlx5_0/1", None)) == "leaf-1 port 12"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"node1,mlx5_0,1\n", "topology line 1: 3 values"),
        (b"\xff\xfe\n", "is no text: byte 0"),
    ],
)
def test_a_file_that_is_not_right_is_named(tmp_path: Path, body: bytes, said: str) -> None:
    file = tmp_path / "topology.csv"
    file.write_bytes(body)

    with pytest.raises(FlapdError, match=said) as told:
        read_topology(file)
    assert str(file) in str(told.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FlapdError, match=r"none.csv cannot be read: No such file"):
        read_topology(tmp_path / "none.csv")


def test_a_fifo_that_nobody_writes_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")

    with pytest.raises(FlapdError, match="fifo is no regular file"):
        read_topology(tmp_path / "fifo")


def test_a_file_without_end_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "large"
    file.touch()
    os.truncate(file, module.LARGEST_TOPOLOGY_BYTES + 1)

    with pytest.raises(FlapdError, match="is larger than 64 MiB"):
        read_topology(file)
