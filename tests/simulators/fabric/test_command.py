"""`python -m simulators.fabric` helps whoever has never seen it."""

import io
import subprocess
import sys
import tarfile
from pathlib import Path

import msgspec
import pytest

from simulators.fabric.mount import fuse_missing
from simulators.fabric.scenarios import SCENARIOS
from simulators.fabric.spec import Spec
from tests.simulators.fabric.running import REPOSITORY


def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "simulators.fabric", *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_to_begin_with_can_be_printed(name: str) -> None:
    shown = run("--show", name)

    assert msgspec.json.decode(shown.stdout, type=Spec) == SCENARIOS[name]()


def test_its_help_holds_a_scenario_that_works() -> None:
    told = run("--help").stdout
    example = told[told.index('{"ports"') : told.index("--show NAME prints")]

    assert msgspec.json.decode(example, type=Spec).ports[0].name == "mlx5_0/1"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--spec"),
        (("--spec", "x.json"), "--mount and --truth"),
        (("--show", "nothing"), "eight_ports"),
        (("--spec", "x.json", "--mount", "m", "--truth", "t"), "x.json cannot be read"),
    ],
)
def test_wrong_use_is_told(arguments: tuple[str, ...], said: str) -> None:
    ended = run(*arguments)

    assert ended.returncode == 2
    assert said in ended.stderr


@pytest.mark.skipif(fuse_missing() is not None, reason=str(fuse_missing()))
def test_a_captured_node_is_mounted_as_it_was(tmp_path: Path) -> None:
    bundle, root = tmp_path / "node.tar.gz", tmp_path / "sys"
    state = "sysfs/class/infiniband/mlx5_0/ports/1/state"
    manifest = b'{"format": 1, "errors": {"class/infiniband/mlx5_0/fw_ver": "EIO"}}'
    with tarfile.open(bundle, "w:gz") as tar:
        for name, content in (("manifest.json", manifest), (state, b"4: ACTIVE\n")):
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    places = ["--capture", bundle, "--mount", root, "--truth", tmp_path / "truth.json"]

    with subprocess.Popen(
        [sys.executable, "-m", "simulators.fabric", "--until-eof", *map(str, places)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline().startswith(b"ready ")
        device = root / "class/infiniband/mlx5_0"
        shown = (device / "ports/1/state").read_text()
        with pytest.raises(OSError, match="Input/output error"):
            (device / "fw_ver").read_text()
        process.stdin.close()
        assert process.wait(timeout=10) == 0

    assert shown == "4: ACTIVE\n"
