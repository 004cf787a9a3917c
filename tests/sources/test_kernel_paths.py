from pathlib import Path

from flapd.sources.kernel_paths import is_kernels_sysfs, why_not_kernels
from tests.sources.namespace import in_namespace
from tests.trees import lay_out


def test_the_running_kernels_sysfs_is_known_by_what_is_mounted_and_not_by_its_name(
    tmp_path: Path,
) -> None:
    lay_out(tmp_path, {"class/infiniband/mlx5_0/node_guid": "0002:c903:0031:2340\n"})

    assert is_kernels_sysfs(Path("/sys"))
    assert not is_kernels_sysfs(tmp_path)
    assert why_not_kernels(tmp_path) == f"paths.sysfs: {tmp_path} is not the running kernel's own"


def test_what_cannot_be_looked_at_is_not_the_kernels(tmp_path: Path) -> None:
    assert not is_kernels_sysfs(tmp_path / "nothing")
    assert not is_kernels_sysfs(Path("/sys"), mounts=tmp_path / "nothing")


def test_another_file_system_at_its_place_is_not_the_kernels(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    real = Path("/proc/self/mountinfo").read_text().splitlines()
    mounts.write_text("\n".join(line.replace(" - sysfs ", " - fuse ") for line in real))

    assert not is_kernels_sysfs(Path("/sys"), mounts=mounts)


def test_a_netdev_is_known_by_number_and_address() -> None:
    told = in_namespace("identity")

    assert told["why_not"] is None
    assert told["sysfs"] == told["kernel"]
    assert told["none"] is None


def test_netdevs_of_a_tree_that_is_not_the_kernels_are_heard_of_where_one_is_the_kernels() -> None:
    """As a simulated node has it that passes one through; each is then told from the others."""
    told = in_namespace("passed_through")

    assert told["same"] is None
    assert "is not the running kernel's own" in told["renumbered"]
    assert "is not the running kernel's own" in told["loopback"]
