"""Fleet: what many nodes tell becomes one story for each thing that happened.

`FleetView` hears `NodeEvent`s and heartbeats and tells incidents of the fleet: `Incident`s whose
`nodes` are those that had part in it, the one to look at first in front (`node`), and whose
`shared_cause` says what took many ports down at once. Incidents that nodes tell themselves have
no `nodes`: they are claims, and count for nothing in a fleet.
"""

from flapd.core.fleet.nodes import ClockEstimate, Nodes, NodeView
from flapd.core.fleet.topology import Link, Peer, Topology
from flapd.core.fleet.totals import FleetTotals
from flapd.core.fleet.view import FleetView

__all__ = [
    "ClockEstimate",
    "FleetTotals",
    "FleetView",
    "Link",
    "NodeView",
    "Nodes",
    "Peer",
    "Topology",
]
