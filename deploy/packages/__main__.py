"""Makes packages: `python -m deploy.packages [DISTRIBUTION...]`, of all unless named."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory

from deploy.packages.distributions import DISTRIBUTIONS, MACHINES, Distribution
from deploy.packages.tree import HOME, ROOT, lay_out
from flapd import __version__

HERE = Path(__file__).parent


def main() -> None:
    wanted = _arguments()
    os.umask(0o022)
    wanted.into.mkdir(parents=True, exist_ok=True)
    for name in wanted.distribution or DISTRIBUTIONS:
        for arch in wanted.arch or MACHINES:
            _make(DISTRIBUTIONS[name], arch, wanted.into)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="build-packages", description=__doc__)
    parser.add_argument("distribution", nargs="*", help=", ".join(DISTRIBUTIONS))
    parser.add_argument("--arch", action="append", choices=MACHINES)
    parser.add_argument("--into", type=Path, default=ROOT / "dist")
    wanted = parser.parse_args()
    for name in wanted.distribution:
        if name not in DISTRIBUTIONS:
            parser.error(f"there is no package for {name}: {', '.join(DISTRIBUTIONS)}")
    return wanted


def _make(distribution: Distribution, arch: str, into: Path) -> None:
    with TemporaryDirectory() as directory:
        tree, scratch = Path(directory, "tree"), Path(directory, "scratch")
        scratch.mkdir()
        lay_out(tree, distribution, MACHINES[arch], scratch)
        when = os.environ.get("SOURCE_DATE_EPOCH") or _last_commit()
        _date(tree, int(when))
        config = scratch / "nfpm.yaml"
        config.write_text(_config(distribution, arch, tree))
        nfpm = shutil.which("nfpm", path=str(Path(sys.executable).parent)) or "nfpm"
        subprocess.run(
            [nfpm, "package", "-f", config, "-p", distribution.packager, "-t", into],
            check=True,
            env={**os.environ, "SOURCE_DATE_EPOCH": when},
        )


def _config(distribution: Distribution, arch: str, tree: Path) -> str:
    depends = [f"python{distribution.python}"]
    return Template((HERE / "nfpm.yaml").read_text()).substitute(
        arch=arch,
        version=__version__,
        release=distribution.release,
        depends=", ".join(depends),
        recommends=", ".join(distribution.recommends),
        tree=tree,
        files="\n".join(_listed(tree)),
        scripts=HERE / "scripts",
    )


def _listed(tree: Path) -> Iterator[str]:
    """One by one: a package that has a directory such as /usr/bin as its own fights over it."""
    for path in sorted((tree / "usr").rglob("*")):
        place = path.relative_to(tree)
        if path.is_file() and HOME not in place.parents:
            yield f'  - {{src: "{path}", dst: "/{place}"}}'


def _date(tree: Path, when: int) -> None:
    """The same source makes the same package, whenever that is."""
    for path in tree.rglob("*"):
        os.utime(path, (when, when), follow_symlinks=False)


def _last_commit() -> str:
    """Seconds since 1970; 0 where this is no checkout."""
    git = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(git, capture_output=True, text=True, check=False)
    return done.stdout.strip() or "0"


if __name__ == "__main__":
    main()
