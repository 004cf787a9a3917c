"""Topology file: bounded, and told in one sentence where it is not right."""

from pathlib import Path

from flapd.core.fleet.topology import Topology
from flapd.core.fleet.topology_text import topology_of
from flapd.model.errors import FlapdError

LARGEST_TOPOLOGY_BYTES = 64 << 20


def topology_of_setting(named: str) -> Topology:
    """Of the file that `hub.topology` names; empty where it names none."""
    return read_topology(Path(named)) if named else Topology()


def read_topology(path: Path) -> Topology:
    """A CSV file or what `ibnetdiscover` prints; FlapdError where it cannot be read or is not."""
    if path.exists() and not path.is_file():
        raise FlapdError(f"topology {path} is no regular file")
    try:
        with path.open("rb") as file:
            body = file.read(LARGEST_TOPOLOGY_BYTES + 1)
    except OSError as error:
        raise FlapdError(f"topology {path} cannot be read: {error.strerror}") from error
    if len(body) > LARGEST_TOPOLOGY_BYTES:
        raise FlapdError(f"topology {path} is larger than {LARGEST_TOPOLOGY_BYTES >> 20} MiB")
    try:
        return topology_of(body.decode())
    except UnicodeDecodeError as error:
        raise FlapdError(f"topology {path} is no text: byte {error.start} is not UTF-8") from error
    except FlapdError as error:
        raise FlapdError(f"{path}: {error}") from error
