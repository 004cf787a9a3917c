"""What a node should have: as configured, else what it had before and what its siblings have."""

from collections import Counter
from collections.abc import Collection, Iterable

import msgspec

from flapd.core.fabric.view import PortView
from flapd.model.observation import Expectations


class Sibling(msgspec.Struct, frozen=True):
    """What of a port its siblings are measured by."""

    driver: str | None
    link_layer: str
    best_rate_mbps: int
    """The fastest it was seen up at; 0 = never."""


def expected_rate_mbps(
    port: Sibling, all_ports: Iterable[Sibling], told: Expectations
) -> int | None:
    """As configured, else the fastest it had, or that most ports of its kind have."""
    if told.rate_mbps is not None:
        return told.rate_mbps
    rates = [
        other.best_rate_mbps
        for other in all_ports
        if other.best_rate_mbps
        and (other.driver, other.link_layer) == (port.driver, port.link_layer)
    ]
    common, having_it = Counter(rates).most_common(1)[0] if rates else (0, 0)
    of_most = common if 2 * having_it > len(rates) else 0
    return max(port.best_rate_mbps, of_most) or None


def ports_expected(views: Collection[PortView], told: Expectations) -> int:
    """As configured, else the places (device and number) at which a port was up at some time."""
    if told.ports is not None:
        return told.ports
    return len({view.port.name for view in views if view.ever_up and view.port.member is None})
