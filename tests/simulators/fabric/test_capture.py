"""A bundle of `flapd capture` is served as it was found, with its errors."""

import errno
import io
import json
import tarfile
from pathlib import Path

import pytest

from simulators.errors import SimulatorError
from simulators.fabric.capture import read_capture
from simulators.fabric.node import Directory, Symlink
from tests.simulators.fabric.trees import answer, resolve

DEVICE = "devices/pci0000:3a/0000:3b:00.0/infiniband/mlx5_0"
MANIFEST = {
    "format": 1,
    "flapd": "0.1",
    "errors": {f"{DEVICE}/ports/1/counters/symbol_error": "EINVAL"},
    "hung": [f"{DEVICE}/ports/1/phys_state"],
    "unread": [f"{DEVICE}/ports/1/rate"],
}


def bundle(path: Path, manifest: object = MANIFEST) -> Path:
    """As the CLI writes it: a file whose read failed is there and empty."""
    files = {
        "manifest.json": json.dumps(manifest),
        f"sysfs/{DEVICE}/ports/1/state": "4: ACTIVE\n",
        f"sysfs/{DEVICE}/ports/1/phys_state": "",
        f"sysfs/{DEVICE}/ports/1/counters/symbol_error": "",
        "versions.json": "{}",
    }
    with tarfile.open(path, "w:gz") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content.encode()))
        empty = tarfile.TarInfo("sysfs/bus/pci/drivers/mlx5_core")
        empty.type = tarfile.DIRTYPE
        tar.addfile(empty)
        link = tarfile.TarInfo("sysfs/class/infiniband/mlx5_0")
        link.type, link.linkname = tarfile.SYMTYPE, f"../../{DEVICE}"
        tar.addfile(link)
    return path


def test_files_links_and_directories_are_where_they_were(tmp_path: Path) -> None:
    tree, _ = read_capture(bundle(tmp_path / "node.tar.gz"))

    assert answer(tree, "/class/infiniband/mlx5_0/ports/1/state", 0) == "4: ACTIVE"
    assert resolve(tree, "/class/infiniband/mlx5_0") == f"/{DEVICE}"
    assert tree["/bus/pci/drivers/mlx5_core"] == Directory(())
    assert isinstance(tree["/class/infiniband/mlx5_0"], Symlink)
    assert not any("versions" in path or "manifest" in path for path in tree)


def test_reads_that_failed_fail_again(tmp_path: Path) -> None:
    tree, _ = read_capture(bundle(tmp_path / "node.tar.gz"))
    path = "/class/infiniband/mlx5_0/ports/1/counters/symbol_error"

    assert answer(tree, path, 0) == errno.EINVAL


def test_reads_that_hung_or_would_have_hang_again(tmp_path: Path) -> None:
    _, windows = read_capture(bundle(tmp_path / "node.tar.gz"))

    assert {path.rpartition("/")[2] for path in windows} == {"phys_state", "rate"}
    assert {window.kind for found in windows.values() for window in found} == {"hang"}


def test_what_leads_out_of_the_tree_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "node.tar.gz"
    with tarfile.open(path, "w:gz") as tar:
        for name, content in (
            ("manifest.json", b'{"format": 1}'),
            ("sysfs/../../etc/passwd", b"x"),
            ("sysfs/class/a", b"x"),
        ):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))

    tree, _ = read_capture(path)

    assert not any("passwd" in place for place in tree)
    assert "/class/a" in tree


@pytest.mark.parametrize("manifest", [{"format": 2}, [], {"format": "1"}])
def test_a_bundle_of_another_form_is_refused(tmp_path: Path, manifest: object) -> None:
    with pytest.raises(SimulatorError, match=r"node\.tar\.gz"):
        read_capture(bundle(tmp_path / "node.tar.gz", manifest))


@pytest.mark.parametrize("content", [b"", b"no tar at all", b"\x1f\x8b\x08 and then nothing"])
def test_what_is_no_bundle_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "node.tar.gz").write_bytes(content)

    with pytest.raises(SimulatorError, match="cannot be read"):
        read_capture(tmp_path / "node.tar.gz")


def test_a_missing_bundle_is_named(tmp_path: Path) -> None:
    with pytest.raises(SimulatorError, match="nothing"):
        read_capture(tmp_path / "nothing.tar.gz")
