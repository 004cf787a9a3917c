"""Bonds: what the members of a bond's port count is shown as that port's own."""

from collections import defaultdict
from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from flapd.core.fabric.view import COUNTED_CAUSES, LinkTotals, PortView


def with_members(views: Iterable[PortView]) -> list[PortView]:
    """The ports there are; a member's entry is none, its downs are its port's."""
    ports, members = [], defaultdict(list)
    for view in views:
        if view.port.member is None:
            ports.append(view)
        else:
            members[port_key(view)].append(view)
    return [_merged(view, members.get(view.port.key, [])) for view in ports]


def port_key(view: PortView) -> str:
    """Key of the port that this entry is shown as."""
    return view.port.key.removesuffix(f"/{view.port.member}")


def _merged(view: PortView, members: Sequence[PortView]) -> PortView:
    if not members:
        return view
    entries = [view, *members]
    last = max(entries, key=_went_down)
    return replace(
        view,
        totals=_sum([entry.totals for entry in entries]),
        witness_resets=sum(entry.witness_resets for entry in entries),
        last_down=last.last_down,
        last_down_ns=last.last_down_ns,
        flapping=any(entry.flapping for entry in entries),
        penalty=max(entry.penalty for entry in entries),
    )


def _went_down(view: PortView) -> int:
    return -1 if view.last_down is None else view.last_down.latest_unix_ns


def _sum(totals: Sequence[LinkTotals]) -> LinkTotals:
    return LinkTotals(
        downs={cause: sum(one.downs.get(cause, 0) for one in totals) for cause in COUNTED_CAUSES},
        flaps=sum(one.flaps for one in totals),
        drops=sum(one.drops for one in totals),
        down_ns=sum(one.down_ns for one in totals),
    )
