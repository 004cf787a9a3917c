"""Topology text: whichever form it has."""

from flapd.core.fleet.topology import Topology
from flapd.core.fleet.topology_csv import links_of_csv
from flapd.core.fleet.topology_discovered import is_discovered, links_of_discovered
from flapd.model.errors import FlapdError

MOST_LINES = 2_000_000
_LONGEST_LINE = 4096


def topology_of(text: str) -> Topology:
    """CSV or the output of `ibnetdiscover`; FlapdError names the line that is neither."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise FlapdError(f"topology: {len(lines):,} lines are more than {MOST_LINES:,}")
    for number, line in enumerate(lines, 1):
        if len(line) > _LONGEST_LINE:
            raise FlapdError(f"topology line {number}: longer than {_LONGEST_LINE} letters")
    lines = [line.rstrip("\r") for line in lines]
    discovered = is_discovered(lines)
    return Topology(links_of_discovered(lines) if discovered else links_of_csv(lines))
