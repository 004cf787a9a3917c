"""Of which node: ports are told with their node where more than one is told of."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from flapd.cli.answers import FlapAnswer, FlapDetail, PortAnswer
from flapd.cli.client import ask
from flapd.cli.job_answers import IncidentAnswer, IncidentDetail, StallAnswer
from flapd.cli.output import decoded
from flapd.cli.target import Target
from flapd.model.errors import FlapdError

_Item = TypeVar("_Item", FlapAnswer, FlapDetail, PortAnswer)
_Incident = TypeVar("_Incident", bound=IncidentAnswer)


class Alive(msgspec.Struct, frozen=True):
    """The answer of /healthz."""

    cluster: str | None = None


def tells_of_many(targets: Sequence[Target]) -> bool:
    """It is a hub that answers; what does not say so is taken for the agent of one node."""
    try:
        return decoded(ask(targets, "/healthz"), Alive).cluster is not None
    except FlapdError:
        return False


def with_node(item: _Item) -> _Item:
    return replace(item, port=named(item.node, item.port))


def named(node: str | None, port: str) -> str:
    return port if node is None else f"{node} {port}"


def of_fleet(incident: _Incident) -> _Incident:
    """An incident of a fleet names each port with its node; that of a node stays as it is."""
    if not incident.nodes:
        return incident
    causes = [replace(one, port=named(one.node, one.port)) for one in incident.causes]
    told = replace(incident, causes=causes)
    if not isinstance(told, IncidentDetail):
        return told
    return replace(
        told,
        flaps=[with_node(flap) for flap in told.flaps],
        stalls=[_stall(stall) for stall in told.stalls],
    )


def _stall(stall: StallAnswer) -> StallAnswer:
    return replace(stall, ports=[named(stall.node, port) for port in stall.ports])
