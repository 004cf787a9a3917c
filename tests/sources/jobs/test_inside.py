"""A job's names lead nowhere but into its own root."""

import errno
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from flapd.sources.follow.regular import NotRegularError, opened
from flapd.sources.jobs.inside import open_inside, openat2, read_inside, walk

Resolve = Callable[[int, str], int]


def _has_openat2() -> bool:
    try:
        os.close(openat2(os.open("/", os.O_PATH), "/"))
    except OSError as error:
        return error.errno not in {errno.ENOSYS, errno.EPERM}
    return True


both = pytest.mark.parametrize(
    "resolve",
    [
        pytest.param(
            openat2, marks=pytest.mark.skipif(not _has_openat2(), reason="no openat2 here")
        ),
        walk,
    ],
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "secret").write_text("of the node")
    root = tmp_path / "root"
    (root / "etc").mkdir(parents=True)
    (root / "etc/nccl.conf").write_text("NCCL_IB_TIMEOUT=22\n")
    (root / "etc/passwd").write_text("of the job")
    return root


def read(resolve: Resolve, root: Path, path: str) -> str:
    at = os.open(root, os.O_PATH)
    try:
        fd = opened(resolve(at, path))
    finally:
        os.close(at)
    with os.fdopen(fd) as file:
        return file.read()


@both
def test_a_file_is_read_by_its_name_in_the_root(resolve: Resolve, root: Path) -> None:
    assert read(resolve, root, "/etc/nccl.conf") == "NCCL_IB_TIMEOUT=22\n"


@both
@pytest.mark.parametrize("target", ["/etc/passwd", "../../../etc/passwd"])
def test_a_link_never_leads_out(resolve: Resolve, root: Path, target: str) -> None:
    (root / "link").symlink_to(target)

    with suppress(OSError):  # it may refuse to follow any
        assert read(resolve, root, "/link") == "of the job"


@both
@pytest.mark.parametrize("path", ["/../secret", "/etc/../../secret", "../secret"])
def test_upwards_is_nowhere(resolve: Resolve, root: Path, path: str) -> None:
    with pytest.raises(OSError, match=r"No such file|upwards"):
        read(resolve, root, path)


@both
def test_a_loop_of_links_is_an_error(resolve: Resolve, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")

    with pytest.raises(OSError) as caught:
        read(resolve, root, "/a/file")
    assert caught.value.errno in {errno.ELOOP, errno.ENOTDIR}


@both
def test_a_link_of_procfs_is_not_followed(resolve: Resolve, root: Path) -> None:
    """It would lead anywhere, whatever the root."""
    with pytest.raises(OSError) as caught:
        read(resolve, Path("/proc"), f"/{os.getpid()}/root/etc/passwd")
    assert caught.value.errno == errno.ELOOP


def test_a_pipe_and_a_directory_are_refused_without_being_opened(root: Path) -> None:
    os.mkfifo(root / "pipe")
    for path in ("/pipe", "/etc"):
        with pytest.raises(NotRegularError):
            open_inside(root, path)


def test_what_is_too_long_is_not_read(root: Path) -> None:
    (root / "long").write_bytes(b"x" * 100)

    assert read_inside(root, "/long", 99) is None
    assert read_inside(root, "/long", 100) == b"x" * 100


def test_nothing_is_left_open(root: Path) -> None:
    (root / "link").symlink_to("/nowhere")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for path in ("/etc/nccl.conf", "/nothing", "/link", "/etc"):
        at = os.open(root, os.O_PATH)
        for resolve in (openat2, walk):
            try:
                os.close(resolve(at, path))
            except OSError:
                continue
        os.close(at)

    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208
