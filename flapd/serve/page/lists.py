"""Lists: ports, outages, incidents and jobs as tables."""

from collections.abc import Sequence

from flapd.serve.incident_words import words
from flapd.serve.items import FlapItem, PortItem
from flapd.serve.job_items import IncidentItem
from flapd.serve.page.concerns import rate
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.parts import Column, badge, table
from flapd.serve.page.words import (
    NOT_KNOWN,
    certainty,
    downs,
    flap_link,
    gpu_hours,
    incident_link,
    lasted,
    listed,
    loss,
    minute,
    moment,
    plainly,
    port_link,
    verdict,
)
from flapd.serve.status import RunningJob

_SERIOUS = {"caused": "bad", "likely": "bad", "unknown": "warn", "elsewhere": "warn"}


def incident_table(found: Sequence[IncidentItem], nothing: str) -> Html:
    columns = [
        Column("Began (UTC)"),
        Column("What happened"),
        Column("GPU-hours", "number wide"),
        Column("Price", "number"),
    ]
    return table("Incidents, newest first", columns, map(_incident, found), nothing)


def _incident(item: IncidentItem) -> list[Child]:
    open_ = [" ", badge("goes on", "bad")] if item.open else None
    return [
        incident_link(item.id, minute(item.begin)),
        [
            badge(words(item.verdict), _SERIOUS.get(item.verdict, "calm")),
            " ",
            sentence(item),
            open_,
        ],
        gpu_hours(item.gpu_seconds),
        plainly(item.cost),
    ]


def sentence(item: IncidentItem) -> str:
    """What happened, in one."""
    job = "no job" if item.job is None else f"job {item.job}"
    became = "" if item.regime is None else f"; {words(item.regime)}"
    return f"{job}: {verdict(item)}{certainty(item)}{became}; {loss(item)}"


def flap_table(flaps: Sequence[FlapItem], sees_jobs: bool, nothing: str) -> Html:
    columns = [
        Column("Down (UTC)"),
        Column("Port"),
        Column("Down for", "number"),
        Column("Cause"),
        Column("Seen", "wide"),
    ]
    if sees_jobs:
        columns += [Column("GPU-hours", "number wide"), Column("Incident", "wide")]
    return table(
        "Outages, newest first", columns, (_flap(one, sees_jobs) for one in flaps), nothing
    )


def _flap(item: FlapItem, sees_jobs: bool) -> list[Child]:
    told = ", ".join(filter(None, [words(item.cause), item.reason]))
    row: list[Child] = [
        flap_link(item.id, moment(item.down)),
        [port_link(item.port), f" {item.member}" if item.member else None],
        _lasted(item),
        [told, "" if item.durable else " (not on disk yet)"],
        words(item.seen),
    ]
    if sees_jobs:
        hours = "-" if item.gpu_seconds is None else gpu_hours(item.gpu_seconds)
        row += [hours, [[incident_link(one, "why"), " "] for one in item.incidents]]
    return row


def _lasted(item: FlapItem) -> Child:
    told = badge("still down", "bad") if item.status == "open" else lasted(item)
    return told if item.count == 1 and not item.count_at_least else [told, f", {downs(item)} downs"]


def port_table(ports: Sequence[PortItem]) -> Html:
    columns = [
        Column("Port"),
        Column("Link"),
        Column("Rate", "number"),
        Column("Flaps 24 h", "number"),
        Column("Last down (UTC)", "wide"),
        Column("Counted by", "wide"),
        Column("Netdev", "wide"),
    ]
    return table("Ports", columns, map(_port, ports), "No RDMA port is found here.")


def _port(port: PortItem) -> list[Child]:
    witness = port.witness
    counted = "nothing" if witness.name is None else f"{witness.name} ({witness.status})"
    return [
        element("span", port_link(port.port), data_port=port.port if port.watched else None),
        link(port),
        rate(port.rate_gbps),
        NOT_KNOWN if port.flaps_24h is None else str(port.flaps_24h),
        "none seen" if port.last_down is None else moment(port.last_down),
        counted,
        port.netdev or "-",
    ]


def link(port: PortItem) -> Child:
    """Up, down or not known, and what else is to be known at a glance."""
    if not port.watched:
        text = "not found" if port.ever_up else "never up"
        return badge(text, "bad" if port.ever_up else "calm")
    word, kind = {True: ("up", "good"), False: ("down", "bad"), None: ("not known", "warn")}[
        port.up
    ]
    more = [
        badge(text, kind)
        for text, kind, is_so in (
            ("flapping", "bad", port.flapping),
            ("slow", "warn", port.downgraded),
            ("maintenance", "calm", port.maintenance),
            ("not readable", "warn", not port.readable),
        )
        if is_so
    ]
    return [badge(word, kind), *([" ", one] for one in more)]


def job_table(jobs: Sequence[RunningJob]) -> Html:
    columns = [
        Column("Job"),
        Column("Ranks", "number"),
        Column("Here", "number"),
        Column("Traffic"),
        Column("Ports", "wide"),
        Column("Since (UTC)", "wide"),
    ]
    return table("Running jobs", columns, map(_job, jobs), "No job is seen here.")


def _job(job: RunningJob) -> list[Child]:
    return [
        f"{job.job} ({words(job.kind)})",
        NOT_KNOWN if job.world_size is None else f"{job.world_size:,}",
        str(job.local_ranks),
        badge("stands still", "bad") if job.stands_still else "not seen standing still",
        listed(job.ports),
        minute(job.since),
    ]
