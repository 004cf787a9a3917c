"""`flapd capture`: what support needs to see of a node, in one file."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from flapd import __version__
from flapd.cli.capture_parts import Parts, as_json
from flapd.cli.output import print_json, print_line
from flapd.cli.progress import Passed, progress
from flapd.cli.target import Target
from flapd.cli.text import size
from flapd.config import Config
from flapd.model.times import SECOND_NS, rfc3339
from flapd.sources.capture import MANIFEST, Manifest, Member, refuse_existing, write_capture
from flapd.sources.capture_tree import Tree, read_tree


class Captured(msgspec.Struct, frozen=True):
    """What --json prints."""

    path: str
    bytes: int
    files: int
    errors: dict[str, str]
    hung: list[str]
    unread: list[str]
    left_out: dict[str, str]


def capture(
    config: Config, targets: Sequence[Target], into: Path, *, force: bool, prints_json: bool
) -> int:
    """The exit status; what cannot be had is left out and told."""
    refuse_existing(into, force=force)
    taken_ns = time.time_ns()
    with progress("reading devices") as passed:
        tree = read_tree(Path(config.paths.sysfs), config.ports.exclude, passed=passed)
    with tempfile.TemporaryDirectory(prefix="flapd-") as work:
        parts = Parts(config, Path(work))
        gathered = list(parts.gather(targets, _drivers(tree)))
        excluded = dict.fromkeys(sorted(tree.excluded), "ports.exclude")
        manifest = _manifest(config, tree, taken_ns, excluded | parts.left_out)
        members = [Member(MANIFEST, as_json(manifest)), *tree.members(), *gathered]
        with progress("packing") as passed:
            seconds = taken_ns // SECOND_NS
            write_capture(into, _counted(members, passed), seconds, force=force)
    _tell(into, tree, manifest, prints_json)
    return 0


def _drivers(tree: Tree) -> list[str]:
    links = tree.links.items()
    return sorted({Path(target).name for link, target in links if link.endswith("/driver")})


def _manifest(config: Config, tree: Tree, taken_ns: int, left_out: dict[str, str]) -> Manifest:
    return Manifest(
        flapd=__version__,
        node=config.node.name,
        taken=rfc3339(taken_ns),
        errors=tree.errors,
        hung=sorted(tree.hung),
        unread=sorted(tree.unread),
        left_out=left_out,
    )


def _counted(members: Sequence[Member], passed: Passed) -> Iterator[Member]:
    for done, member in enumerate(members):
        passed(done, len(members))
        yield member


def _tell(into: Path, tree: Tree, manifest: Manifest, prints_json: bool) -> None:
    told = Captured(
        path=str(into),
        bytes=into.stat().st_size,
        files=len(tree.files),
        errors=manifest.errors,
        hung=manifest.hung,
        unread=manifest.unread,
        left_out=manifest.left_out,
    )
    if prints_json:
        print_json(msgspec.json.encode(told))
        return
    print_line(
        f"{into}: {size(told.bytes)}, {told.files} files of sysfs, {len(told.errors)} reads failed"
    )
    for path in told.hung:
        print_line(f"  hung: {path}", "red", indent=4)
    for part, why in told.left_out.items():
        print_line(f"  left out: {part}: {why}", indent=4)
    print_line("In it are names, addresses and serial numbers of this node's ports; no secrets.")
