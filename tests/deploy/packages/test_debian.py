"""The package for Debian 12, by its content."""

import re
import subprocess
from pathlib import Path

from deploy.packages.distributions import DISTRIBUTIONS
from flapd import __version__
from tests.deploy.packages import content
from tests.deploy.packages.built import ROOT, Package
from tests.programs import program


def field(package: Package, name: str) -> str:
    done = subprocess.run(
        [program("dpkg-deb"), "-f", package.file, name], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_everything_is_where_it_belongs(debian: Package) -> None:
    content.check_what_is_there(debian)
    content.check_what_may_be_written_and_run(debian)
    content.check_it_says_nothing_of_where_it_was_built(debian)


def test_everything_belongs_to_root(debian: Package) -> None:
    command = [program("dpkg-deb"), "-c", str(debian.file)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert {line.split()[1] for line in listed.splitlines()} == {"root/root"}


def test_its_unit_is_that_of_this_source_with_another_path(debian: Package) -> None:
    content.check_the_unit(debian)


def test_it_brings_what_it_needs_for_its_machine_and_runs_with_its_python(
    debian: Package, tmp_path: Path
) -> None:
    content.check_its_dependencies_are_all_there(debian)
    content.check_its_machine(debian, "amd64")
    content.check_it_runs(debian, tmp_path)


def test_it_asks_for_its_python_and_takes_pyverbs_where_it_can_be_had(debian: Package) -> None:
    assert field(debian, "Version") == f"{__version__}-1~debian12"
    assert field(debian, "Depends") == "python3.11"
    assert "python3-pyverbs" in field(debian, "Recommends")


def test_the_configuration_is_one_that_upgrades_leave_alone(
    debian: Package, tmp_path: Path
) -> None:
    subprocess.run([program("dpkg-deb"), "-e", debian.file, tmp_path / "control"], check=True)

    assert (tmp_path / "control/conffiles").read_text().split() == ["/etc/flapd/flapd.toml"]


def test_shellcheck_finds_nothing_in_its_scripts() -> None:
    scripts = sorted((ROOT / "deploy/packages/scripts").iterdir())
    command = [program("shellcheck"), *map(str, scripts), str(ROOT / "scripts/build-packages")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout) == (0, "")


def test_the_image_of_a_container_is_made_of_it(debian: Package) -> None:
    recipe = (ROOT / "deploy/container/Containerfile").read_text()
    (named,) = re.findall(r"/dist/(\S+\.deb)", recipe)

    assert named.replace("${TARGETARCH}", "amd64") == debian.file.name
    assert (debian.tree / "usr/bin/flapd").is_symlink()
    assert 'ENTRYPOINT ["/usr/bin/flapd"]' in recipe


def test_every_distribution_is_of_a_python_that_flapd_is_for() -> None:
    minors = {int(each.python.partition(".")[2]) for each in DISTRIBUTIONS.values()}

    assert minors <= set(range(10, 14))
