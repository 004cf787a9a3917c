"""Reads simulated trees without a file system in between."""

import posixpath

from simulators.fabric.node import File, Symlink, Tree
from simulators.fabric.spec import Spec
from simulators.fabric.tree import build_tree, simulated_ports

ORIGIN_NS = 5_000_000_000_007
SECOND_NS = 1_000_000_000


def tree_of(spec: Spec) -> Tree:
    return build_tree(simulated_ports(spec, ORIGIN_NS, ORIGIN_NS))


def tree_at(spec: Spec, seconds: float) -> Tree:
    return build_tree(simulated_ports(spec, ORIGIN_NS, ORIGIN_NS), at(seconds))


def at(seconds: float) -> int:
    return ORIGIN_NS + round(seconds * SECOND_NS)


def resolve(tree: Tree, path: str) -> str:
    """The path with every link in it followed."""
    done = ""
    for name in path.strip("/").split("/"):
        done = f"{done}/{name}"
        node = tree[done]
        if isinstance(node, Symlink):
            done = resolve(tree, posixpath.normpath(posixpath.join(done, "..", node.target)))
    return done


def read(tree: Tree, path: str, t_ns: int = ORIGIN_NS) -> str:
    node = tree[resolve(tree, path)]
    assert isinstance(node, File)
    return node.content(t_ns).decode("latin-1")


def answer(tree: Tree, path: str, seconds: float) -> str | int | None:
    """What a read at that second gives: a line, an errno, or None where there is no file."""
    try:
        return read(tree, path, at(seconds)).removesuffix("\n")
    except KeyError:
        return None
    except OSError as error:
        return error.errno
