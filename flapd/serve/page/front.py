"""Front: is anything wrong now, what happened last, and when."""

from collections.abc import Iterator, Sequence

import msgspec

from flapd.serve.items import FlapItem, PortItem
from flapd.serve.job_items import IncidentItem
from flapd.serve.page.concerns import Concern, Concerns
from flapd.serve.page.html import Child, Html, element
from flapd.serve.page.lists import flap_table, incident_table, job_table, port_table
from flapd.serve.page.parts import facts, items, section
from flapd.serve.page.words import NOT_KNOWN, gpu_hours, length, plainly
from flapd.serve.status import Status
from flapd.serve.summary_item import SummaryItem

_UNREADABLE = "Not known: the history cannot be read."


class Front(msgspec.Struct, frozen=True):
    """What the first screen tells of; what is None cannot be read now."""

    status: Status
    ports: list[PortItem]
    flaps: list[FlapItem] | None
    incidents: list[IncidentItem] | None
    day: SummaryItem | None


def front_title(found: Concerns) -> str:
    return f"{len(found.wrong)} wrong" if found.wrong else "Now"


def front(told: Front, found: Concerns, sees_jobs: bool) -> Iterator[Html]:
    yield section("now", "Now", _verdict(found, sees_jobs), _figures(told, sees_jobs))
    if sees_jobs:
        yield section("incidents", "Last incidents", _incidents(told.incidents), _more("incidents"))
    yield timeline("the last 24 hours")
    if sees_jobs:
        yield section("jobs", "Jobs", job_table(told.status.jobs.running))
    yield section("ports", "Ports", port_table(told.ports))
    yield section("flaps", "Last outages", _flaps(told.flaps, sees_jobs), _more("flaps"))


def _verdict(found: Concerns, sees_jobs: bool) -> Iterator[Child]:
    well = "Nothing is wrong" if sees_jobs else "Nothing is wrong with the fabric"
    if found.wrong:
        count = len(found.wrong)
        text = "1 thing is wrong" if count == 1 else f"{count} things are wrong"
        yield element("p", text, class_="verdict bad")
        yield _concerns(found.wrong)
    elif found.blind:
        yield element("p", f"{well} that flapd can see", class_="verdict good")
    else:
        yield element("p", well, class_="verdict good")
    if found.planned:
        yield element("h3", "Under maintenance")
        yield _concerns(found.planned)
    if found.blind:
        yield element("h3", "Cannot be seen")
        yield _concerns(found.blind)


def _concerns(told: Sequence[Concern]) -> Html:
    return items(([element("b", one.about), " ", one.said] for one in told), "concerns")


def _figures(told: Front, sees_jobs: bool) -> Html:
    ports, day = told.status.ports, told.day
    figures: dict[str, Child] = {
        "Ports up": f"{ports.up} of {ports.expected or ports.watched}",
        "Outages, 24 h": NOT_KNOWN if day is None else f"{day.flaps.outages:,}",
        "Down, 24 h": NOT_KNOWN if day is None else length(day.flaps.down_seconds),
    }
    if sees_jobs:
        running, incidents = told.status.jobs.running, told.status.jobs.incidents
        figures |= {
            "Jobs": f"{len(running)}",
            "Incidents open": NOT_KNOWN if incidents is None else f"{len(incidents)}",
            "GPU-hours by ports here, 24 h": NOT_KNOWN
            if day is None
            else gpu_hours(day.gpu_seconds),
            "Price, 24 h": NOT_KNOWN if day is None else plainly(day.cost),
        }
    return facts(figures)


def _incidents(found: Sequence[IncidentItem] | None) -> Html:
    if found is None:
        return element("p", _UNREADABLE)
    return incident_table(found, "No incident: nothing hurt a job that flapd knows of.")


def _flaps(found: Sequence[FlapItem] | None, sees_jobs: bool) -> Html:
    if found is None:
        return element("p", _UNREADABLE)
    return flap_table(found, sees_jobs, "No outage is in the history.")


def _more(path: str) -> Html:
    return element(
        "p", element("a", f"all {'outages' if path == 'flaps' else path}", href=f"/{path}")
    )


def timeline(span: str, since: str | None = None, until: str | None = None) -> Html:
    """Drawn by the script; the tables tell the same."""
    without = element(
        "noscript", element("p", "It is drawn by a script; the tables tell the same.")
    )
    heading = element("h2", "Timeline", id="timeline-title")
    area = element("div", id="timeline", data_since=since, data_until=until)
    return element(
        "section",
        heading,
        element("p", f"Shows {span}.", class_="quiet", id="timeline-span"),
        without,
        area,
        aria_labelledby="timeline-title",
    )
