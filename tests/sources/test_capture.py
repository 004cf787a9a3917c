"""A capture: what was read comes back as it was, failed and hanging reads included."""

import gzip
import io
import json
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from flapd.core.fabric.catalogue import LINK_DOWNED, STATE
from flapd.sources.capture import CaptureError, Manifest, Member, write_capture
from flapd.sources.capture_opening import captured_ports, open_capture
from flapd.sources.capture_tree import Tree, read_tree
from flapd.sources.settings import PortsSettings
from flapd.sources.survey import survey
from simulators.fabric.mount import fuse_missing
from simulators.fabric.spec import Fault, Spec, two_ports
from tests.trees import lay_out, lay_out_capture

NODE = {
    "class/infiniband/mlx5_0/node_guid": "0002:c903:0000:0001\n",
    "class/infiniband/mlx5_0/ports/1/state": "4: ACTIVE\n",
    "class/infiniband/mlx5_0/ports/1/phys_state": "5: LinkUp\n",
    "class/infiniband/mlx5_0/ports/1/rate": "400 Gb/sec (4X NDR)\n",
    "class/infiniband/mlx5_0/ports/1/link_layer": "InfiniBand\n",
    "class/infiniband/mlx5_0/ports/1/counters/link_downed": "3\n",
    "class/net/ib0/dev_port": "0\n",
}


def packed(path: Path, tree: Tree) -> Path:
    manifest = Manifest(
        flapd="1",
        node="node17",
        taken="2026-11-30T03:12:07.000000Z",
        errors=tree.errors,
        hung=sorted(tree.hung),
        unread=sorted(tree.unread),
    )
    members = [Member("manifest.json", msgspec.json.encode(manifest)), *tree.members()]
    write_capture(path, members, 1_700_000_000, force=False)
    return path


def captured(sysfs: Path, into: Path) -> Path:
    return packed(into, read_tree(sysfs))


def test_ports_of_a_capture_are_those_of_the_node(tmp_path: Path) -> None:
    lay_out(tmp_path / "sys", NODE)
    seen = survey(tmp_path / "sys", PortsSettings())

    capture = captured(tmp_path / "sys", tmp_path / "capture.tar.gz")
    (tmp_path / "into").mkdir()
    manifest, shown = captured_ports(capture, tmp_path / "into")

    assert manifest.node == "node17"
    assert [view.port for view in shown] == [view.port for view in seen]
    assert [view.values for view in shown] == [view.values for view in seen]
    assert shown[0].values[LINK_DOWNED] == 3


def test_a_captured_rxe_device_keeps_its_links(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    lay_out_capture("sys-class-infiniband-rxe0.txt", sysfs)
    real = sysfs / "devices/virtual/infiniband"
    real.mkdir(parents=True)
    (sysfs / "class/infiniband/rxe0").rename(real / "rxe0")
    (sysfs / "class/infiniband/rxe0").symlink_to("../../devices/virtual/infiniband/rxe0")

    tree = read_tree(sysfs)

    assert tree.links == {"class/infiniband/rxe0": "../../devices/virtual/infiniband/rxe0"}
    assert tree.files["devices/virtual/infiniband/rxe0/ports/1/state"] == b"4: ACTIVE\n"
    assert not [path for path in tree.files if path.startswith("class/")]
    assert not [path for path in tree.files if "cm_rx_msgs" in path]


def test_a_node_without_devices_is_a_capture_without_ports(tmp_path: Path) -> None:
    (tmp_path / "sys/class").mkdir(parents=True)

    capture = captured(tmp_path / "sys", tmp_path / "capture.tar.gz")
    (tmp_path / "into").mkdir()

    assert captured_ports(capture, tmp_path / "into")[1] == []


def test_links_out_of_sysfs_are_left_out(tmp_path: Path) -> None:
    sysfs = tmp_path / "sys"
    lay_out(sysfs, NODE)
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/node_guid").write_text("secret")
    for name, target in (("a", "../../../secret"), ("b", str(tmp_path / "secret")), ("c", "c")):
        (sysfs / "class/infiniband" / name).symlink_to(target)

    tree = read_tree(sysfs)

    assert b"secret" not in tree.files.values()
    assert tree.links == {}
    assert "class/infiniband/mlx5_0/node_guid" in tree.files


@pytest.mark.parametrize("pattern", ["mlx5_0/*", "0002:c903:0000:0001"])
def test_a_port_that_is_excluded_is_not_read(tmp_path: Path, pattern: str) -> None:
    other = {name.replace("mlx5_0", "mlx5_1"): content for name, content in NODE.items()}
    other["class/infiniband/mlx5_1/node_guid"] = "0002:c903:0000:0002\n"
    lay_out(tmp_path / "sys", {**NODE, **other})

    tree = read_tree(tmp_path / "sys", exclude=["nothing", pattern])

    assert tree.excluded == {"mlx5_0/1"}
    assert {path.split("/")[2] for path in tree.files} == {"mlx5_1"}


def test_the_same_tree_gives_the_same_bytes(tmp_path: Path) -> None:
    lay_out(tmp_path / "sys", NODE)

    first = captured(tmp_path / "sys", tmp_path / "first")
    second = captured(tmp_path / "sys", tmp_path / "second")

    assert first.read_bytes() == second.read_bytes()


def test_a_capture_is_its_owners_alone_and_replaces_nothing(tmp_path: Path) -> None:
    lay_out(tmp_path / "sys", NODE)
    capture = captured(tmp_path / "sys", tmp_path / "capture.tar.gz")
    before = capture.read_bytes()

    with pytest.raises(CaptureError, match="is there already"):
        write_capture(capture, [], 0, force=False)

    assert stat.S_IMODE(capture.stat().st_mode) == 0o600
    assert capture.read_bytes() == before
    write_capture(capture, [], 0, force=True)
    assert capture.read_bytes() != before


NO_REGULAR_FILES = ["fifo", "directory", "link", "link to nothing"]
if os.geteuid() == 0:
    NO_REGULAR_FILES.append("device")


@pytest.mark.parametrize("kind", NO_REGULAR_FILES)
def test_a_capture_replaces_regular_files_alone(tmp_path: Path, kind: str) -> None:
    place, other = tmp_path / "place", tmp_path / "other"
    if kind == "fifo":
        os.mkfifo(place)
    elif kind == "directory":
        place.mkdir()
    elif kind == "link":
        other.write_text("precious")
        place.symlink_to(other)
    elif kind == "link to nothing":
        place.symlink_to(other)
    else:
        os.mknod(place, stat.S_IFCHR | 0o600, os.makedev(1, 3))  # never the machine's own
    before = place.lstat()

    with pytest.raises(CaptureError, match="is no regular file, and --force replaces only such"):
        write_capture(place, [], 0, force=True)

    assert (place.lstat().st_ino, place.lstat().st_mode) == (before.st_ino, before.st_mode)
    assert not other.exists() or other.read_text() == "precious"


def test_a_manifest_that_is_nested_too_deeply_is_not_understood(tmp_path: Path) -> None:
    deep = b'{"more":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    write_capture(tmp_path / "capture", [Member("manifest.json", deep)], 0, force=False)

    with pytest.raises(CaptureError, match="is not right: maximum recursion"):
        open_capture(tmp_path / "capture", tmp_path)


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path: Path) -> None:
    def members() -> Iterator[Member]:
        yield Member("manifest.json", b"{}")
        raise OSError(28, "No space left on device")

    with pytest.raises(CaptureError, match="No space left"):
        write_capture(tmp_path / "capture", members(), 0, force=False)

    assert list(tmp_path.iterdir()) == []


@contextmanager
def fabric(spec: Spec, directory: Path) -> Iterator[Path]:
    missing = fuse_missing()
    if missing is not None:
        pytest.skip(missing)
    scenario, truth, root = (directory / name for name in ("spec.json", "truth.json", "sys"))
    scenario.write_bytes(msgspec.json.encode(spec))
    places = ["--spec", str(scenario), "--truth", str(truth), "--mount", str(root)]
    process = subprocess.Popen(
        [sys.executable, "-m", "simulators.fabric", *places],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == f"ready {root}\n"
        yield root
    finally:
        process.terminate()
        process.wait(timeout=10)
        assert process.stdout is not None
        process.stdout.close()


def test_reads_that_failed_and_hung_are_told_and_come_back(tmp_path: Path) -> None:
    """A device that hangs costs its own files and the patience for one read."""
    faults = (
        Fault("*/mlx5_0/ports/1/phys_state", "hang", -1.0, 600.0),
        Fault("*/mlx5_1/ports/1/rate", "errno", -1.0, 600.0, "EIO"),
    )
    spec = Spec(two_ports().ports, faults)

    with fabric(spec, tmp_path) as sysfs:
        tree = read_tree(sysfs, patience_seconds=1.5)
        capture = packed(tmp_path / "capture.tar.gz", tree)

    (hung,) = tree.hung
    assert hung.endswith("infiniband/mlx5_0/ports/1/phys_state")
    assert any(path.endswith("mlx5_0/ports/1/rate") for path in tree.unread)
    assert {path.rpartition("/")[2]: why for path, why in tree.errors.items()}["rate"] == "EIO"
    assert not {*tree.hung, *tree.unread, *tree.errors} & tree.files.keys()
    (tmp_path / "into").mkdir()
    first, second = captured_ports(capture, tmp_path / "into")[1]
    assert (first.port.name, first.values[STATE]) == ("mlx5_0/1", 4)
    assert first.errors["phys_state"] == "its read hung"
    assert first.errors["rate_mbps"] == "not read, since another read hung"
    assert second.errors["rate_mbps"] == "EIO"
    assert second.port.netdev == "eth2"


def tar(path: Path, *entries: tuple[str, bytes | str], manifest: bytes | None = None) -> Path:
    """A tar with a right manifest and these files (bytes) and links (text)."""
    right = Manifest(flapd="1", node="n", taken="2026-11-30T03:12:07.000000Z")
    with tarfile.open(path, "w:gz") as bundle:
        _entry(bundle, "manifest.json", manifest or msgspec.json.encode(right))
        for name, content in entries:
            _entry(bundle, name, content)
    return path


def _entry(bundle: tarfile.TarFile, name: str, content: bytes | str) -> None:
    entry = tarfile.TarInfo(name)
    if isinstance(content, str):
        entry.type, entry.linkname = tarfile.SYMTYPE, content
        bundle.addfile(entry)
    else:
        entry.size = len(content)
        bundle.addfile(entry, io.BytesIO(content))


@pytest.mark.parametrize(
    "entries",
    [
        [("sysfs/../evil", b"x")],
        [("sysfs//evil", b"x")],
        [("sysfs/a", "/etc"), ("sysfs/a/evil", b"x")],
        [("sysfs/a", "/etc")],
        [("sysfs/a", "../../evil")],
        [("sysfs/a", "b/../../../evil")],
        [("sysfs/p/q/up", "../.."), ("sysfs/p/q/b", "up/../../evil")],
        [("sysfs/a", "."), ("sysfs/a/evil", b"x")],
        [("sysfs/a", b"x"), ("sysfs/a", b"y")],
        [("sysfs/a", b"x"), ("sysfs/a/b", b"y")],
        [("sysfs/a\x1b[2J", b"x")],
        [("sysfs/a", bytes(1 << 20))],
    ],
)
def test_a_capture_that_would_land_elsewhere_is_not_used(
    tmp_path: Path, entries: list[tuple[str, bytes | str]]
) -> None:
    into = tmp_path / "in/to"
    into.mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))

    with pytest.raises(CaptureError, match="is not used: in it is"):
        open_capture(tar(tmp_path / "capture", *entries), into)

    left = {path for path in tmp_path.rglob("*") if not path.is_relative_to(into)}
    assert left == {*(path for path in before if path != into), tmp_path / "capture"}


def test_a_device_node_in_a_capture_is_not_made(tmp_path: Path) -> None:
    capture = tar(tmp_path / "capture")
    with tarfile.open(capture, "w:gz") as bundle:
        right = Manifest(flapd="1", node="n", taken="2026-11-30T03:12:07.000000Z")
        _entry(bundle, "manifest.json", msgspec.json.encode(right))
        node = tarfile.TarInfo("sysfs/disk")
        node.type, node.devmajor, node.devminor = tarfile.BLKTYPE, 8, 0
        bundle.addfile(node)

    with pytest.raises(CaptureError, match="no file, directory or symbolic link"):
        open_capture(capture, tmp_path)


def test_a_small_file_that_unpacks_to_anything_is_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("flapd.sources.capture_opening.LARGEST_BYTES", 1 << 20)
    entries = [(f"sysfs/{number}", bytes(60_000)) for number in range(40)]

    with pytest.raises(CaptureError, match="unpacks to more"):
        open_capture(tar(tmp_path / "capture", *entries), tmp_path)


@pytest.mark.parametrize(
    "make",
    [
        lambda path: None,
        lambda path: path.mkdir(),
        lambda path: path.write_bytes(b""),
        lambda path: path.write_bytes(b"not packed"),
        lambda path: path.write_bytes(gzip.compress(b"not a tar" * 1000)),
        lambda path: path.write_bytes(tar(path).read_bytes()[:-40]),
        lambda path: tar(path, manifest=b"[]"),
        lambda path: tar(path, manifest=json.dumps({"format": 2}).encode()),
        lambda path: tarfile.open(path, "w:gz").close(),
    ],
)
def test_what_is_no_capture_is_told_in_a_sentence(
    tmp_path: Path, make: Callable[[Path], object]
) -> None:
    capture = tmp_path / "capture"
    make(capture)
    (tmp_path / "into").mkdir()

    with pytest.raises(CaptureError, match=f"^{capture}"):
        open_capture(capture, tmp_path / "into")
