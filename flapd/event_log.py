"""EventLog: the lines about ports in the agent's own log, for whoever greps the journal."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import structlog

from flapd.core.fabric.view import COUNTED_CAUSES
from flapd.model.event import Event, Outage, PortChange
from flapd.model.times import SECOND_NS, rfc3339

MOST_REMEMBERED = 1000
"""An older outage that is revised after all would be told once more."""
_WARNED = ("flapping", "gone")
"""Changes of a port that somebody may have to act on."""
_ENDS = {"closed": "link_up", "lost": "link_lost"}

_log = structlog.get_logger("flapd.event")


class EventLog:
    """Tells each down and each up once, however many revisions tell of it."""

    def __init__(self) -> None:
        self._told: dict[str, Outage] = {}
        """Outages by id, those told last at the end."""

    def tell(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, PortChange):
                _tell_change(event)
            elif isinstance(event, Outage):
                _tell_outage(event, self._told.pop(event.id, None))
                self._remember(event)

    def _remember(self, outage: Outage) -> None:
        self._told[outage.id] = outage
        if len(self._told) > MOST_REMEMBERED:
            del self._told[next(iter(self._told))]


def _tell_outage(outage: Outage, before: Outage | None) -> None:
    """A warning where the fabric did it: what people and reboots do is no news to them."""
    told = _told(outage)
    is_down = before is None or outage.count > before.count
    is_over = outage.status in _ENDS and (
        before is None or is_down or before.status != outage.status
    )
    if is_down:
        _warn_if(outage.cause in COUNTED_CAUSES)("link_down", **told)
    if is_over:
        _log.info(_ENDS[outage.status], **told, **_ended(outage))
    if not is_down and not is_over:
        _log.info("outage_revised", **told, settled=outage.settled)


def _warn_if(is_warning: bool) -> Callable[..., None]:
    tell: Callable[..., None] = _log.warning if is_warning else _log.info
    return tell


def _tell_change(event: PortChange) -> None:
    _warn_if(event.change in _WARNED)(
        f"port_{event.change}", node=event.node, **_port(event.port), note=event.note
    )


def _told(outage: Outage) -> Mapping[str, Any]:
    member = {} if outage.member is None else {"member": outage.member}
    return {
        "node": outage.node,
        **_port(outage.port),
        **member,
        "cause": outage.cause,
        "down_earliest": rfc3339(outage.down.earliest_unix_ns),
        "down_latest": rfc3339(outage.down.latest_unix_ns),
        "downs": outage.count,
        "downs_at_least": outage.count_at_least,
        "seen": outage.seen,
        "kind": outage.kind,
        "id": outage.id,
        "revision": outage.revision,
    }


def _ended(outage: Outage) -> Mapping[str, Any]:
    if outage.up is None:
        return {}
    return {
        "up_earliest": rfc3339(outage.up.earliest_unix_ns),
        "up_latest": rfc3339(outage.up.latest_unix_ns),
        "down_seconds_min": _seconds(outage.down_ns_min),
        "down_seconds_max": _seconds(outage.down_ns_max),
    }


def _port(name: str) -> Mapping[str, Any]:
    device, _, number = name.rpartition("/")
    return {"device": device, "port": int(number)}


def _seconds(span_ns: int | None) -> float | None:
    return None if span_ns is None else span_ns / SECOND_NS
