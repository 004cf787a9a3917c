"""What is told of a port and an outage: items made of views and events."""

from collections.abc import Mapping
from typing import Any

import msgspec

from flapd.core.fabric.catalogue import PHYSICAL_STATE, RATE_MBPS, STATE, WIDTH_LANES, short_name
from flapd.core.fabric.module_identity import ModuleIdentity
from flapd.core.fabric.view import NOT_READ, PortView, Repair
from flapd.model.event import After, Outage, PortChange
from flapd.model.times import SECOND_NS, Edge, rfc3339
from flapd.serve.items import (
    AfterItem,
    ChangedPort,
    ChangeItem,
    FlapItem,
    Interval,
    Module,
    PortItem,
    RepairItem,
    Seconds,
    Witness,
)
from flapd.serve.names import counter_names, physical_state_text, state_text
from flapd.serve.told_jobs import estimate
from flapd.store.incident_links import FlapLoss

_ERRORS_TOLD = 3
_NO_SOURCES: Mapping[str, str] = {}


def interval(edge: Edge) -> Interval:
    return Interval(rfc3339(edge.earliest_unix_ns), rfc3339(edge.latest_unix_ns))


def flap_item(
    outage: Outage,
    *,
    durable: bool = True,
    black_box: bool | None = None,
    loss: FlapLoss | None = None,
) -> FlapItem:
    """`loss`: what incidents say of it; None where none names it."""
    return FlapItem(
        durable=durable,
        black_box=black_box,
        id=outage.id,
        revision=outage.revision,
        node=outage.node,
        port=outage.port,
        guid=outage.guid,
        member=outage.member,
        kind=outage.kind,
        status=outage.status,
        cause=outage.cause,
        seen=outage.seen,
        layer=outage.layer,
        down=interval(outage.down),
        up=None if outage.up is None else interval(outage.up),
        down_seconds=Seconds(
            _scaled(outage.down_ns_min, SECOND_NS), _scaled(outage.down_ns_max, SECOND_NS)
        ),
        span_seconds=_span_seconds(outage),
        count=outage.count,
        count_at_least=outage.count_at_least,
        settled=outage.settled,
        after=_after(outage.after),
        reason=outage.reason,
        evidence=list(outage.evidence),
        boot=outage.boot,
        grace=outage.grace,
        incidents=[] if loss is None else list(loss.incidents),
        gpu_seconds=None if loss is None else estimate(loss.gpu_seconds),
    )


def without_jobs(item: FlapItem) -> FlapItem:
    """What may be told to those who may not see what belongs to jobs."""
    return msgspec.structs.replace(item, incidents=[], gpu_seconds=None)


def port_item(
    view: PortView,
    *,
    now_ns: int,
    flaps_24h: int | None,
    stuck_since_ns: int | None = None,
    is_blind: bool = False,
    sources: Mapping[str, str] = _NO_SOURCES,
    node: str | None = None,
) -> PortItem:
    """The port at the monotonic time `now_ns`; `flaps_24h` is None without a history.

    `sources` are those besides sysfs.
    """
    told = _identity(view) | _link(view) | _counted(view)
    return PortItem(
        **told,
        node=node,
        flaps_24h=flaps_24h,
        stale_seconds=_seconds_since(view.last_read_ns, now_ns),
        sources={"sysfs": sysfs_source(view, now_ns, stuck_since_ns, is_blind), **sources},
    )


def changed_port(item: PortItem, change: PortChange) -> ChangedPort:
    told = {name: getattr(item, name) for name in PortItem.__struct_fields__}
    told["revision"] = change.revision
    time = rfc3339(change.recorded_ns + change.wall_offset_ns)
    return ChangedPort(**told, change=ChangeItem(change.change, change.note, time))


def _identity(view: PortView) -> dict[str, Any]:
    port = view.port
    return {
        "id": port.key,
        "revision": view.revision,
        "port": port.name,
        "device": port.device,
        "number": port.number,
        "guid": port.guid,
        "pci": port.pci,
        "driver": port.driver,
        "link_layer": port.link_layer,
        "netdev": port.netdev,
        "members": list(port.members),
        "module": _module(view.module),
    }


def _link(view: PortView) -> dict[str, Any]:
    values = view.values
    return {
        "state": state_text(values.get(STATE)),
        "phys_state": physical_state_text(values.get(PHYSICAL_STATE)),
        "rate_gbps": _scaled(values.get(RATE_MBPS), 1000),
        "width": f"{values[WIDTH_LANES]}X" if WIDTH_LANES in values else None,
        "expected_rate_gbps": _scaled(view.expected_rate_mbps, 1000),
        "downgraded": view.downgraded,
        "bit_error_ratio": view.bit_error_ratio,
        "bit_error_level": view.bit_error_level,
        "up": view.up,
        "watched": view.watched,
        "ever_up": view.ever_up,
        "readable": view.readable,
        "flapping": view.flapping,
        "penalty": view.penalty,
        "grace": view.grace,
        "maintenance": view.maintenance,
        "repaired": _repair(view.repaired),
        "last_down": None if view.last_down is None else interval(view.last_down),
    }


def _counted(view: PortView) -> dict[str, Any]:
    names = counter_names(view)
    return {
        "witness": _witness(view),
        "counters": {short: view.values.get(name) for name, short in names.items()},
        "saturated": [names.get(name, short_name(name)) for name in view.saturated],
    }


def _after(after: After | None) -> AfterItem | None:
    return None if after is None else AfterItem(after.rate_mbps / 1000, after.downgraded)


def _module(module: ModuleIdentity | None) -> Module | None:
    return None if module is None else Module(module.vendor, module.part, module.serial)


def _repair(repair: Repair | None) -> RepairItem | None:
    return None if repair is None else RepairItem(rfc3339(repair.unix_ns), repair.note)


def _span_seconds(outage: Outage) -> float | None:
    if outage.up is None:
        return None
    return (outage.up.latest_ns - outage.down.earliest_ns) / SECOND_NS


def _scaled(value: int | None, divisor: int) -> float | None:
    return None if value is None else value / divisor


def _seconds_since(then_ns: int | None, now_ns: int) -> float | None:
    return None if then_ns is None else max(0, now_ns - then_ns) / SECOND_NS


def _witness(view: PortView) -> Witness:
    name = view.counter or view.port.witness
    return Witness(
        None if name is None else short_name(name), view.witness_value, view.witness_status
    )


def sysfs_source(view: PortView, now_ns: int, stuck_since_ns: int | None, is_blind: bool) -> str:
    """`on`, or why this port cannot be read from sysfs."""
    if stuck_since_ns is not None:
        waited = max(0, now_ns - stuck_since_ns) // SECOND_NS
        return f"the reader of {view.port.device} waits in one read for {waited} s"
    if is_blind and not view.readable and not _link_fails(view):
        return "its device cannot be looked at: it fails, or an earlier reader still waits in it"
    if not view.present:
        return "no longer found"
    if view.readable:
        return "on"
    return _unreadable(view)


def _link_fails(view: PortView) -> bool:
    """What tells of the link was tried and gave an error; that it is only old is no reason."""
    of_the_link = (STATE, view.port.witness or "")
    return any(view.errors.get(name, NOT_READ) != NOT_READ for name in of_the_link)


def _unreadable(view: PortView) -> str:
    told = [f"{short_name(name)} {why}" for name, why in list(view.errors.items())[:_ERRORS_TOLD]]
    return "cannot be read: " + ", ".join(told) if told else "not read yet"
