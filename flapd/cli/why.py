"""`flapd why`: one incident, told in order of time."""

import time
from collections.abc import Sequence
from urllib.parse import quote

from flapd.cli.asked_time import AskedTime, asked_time
from flapd.cli.client import ask
from flapd.cli.job_answers import IncidentAnswer, IncidentDetail, IncidentsAnswer
from flapd.cli.of_node import of_fleet
from flapd.cli.output import decoded, note, print_json, print_line
from flapd.cli.pages import Page
from flapd.cli.target import Target
from flapd.cli.text import unix_ns
from flapd.cli.why_text import print_why
from flapd.model.errors import FlapdError
from flapd.model.times import SECOND_NS, rfc3339

_NEAR_NS = 900 * SECOND_NS
_NONE, _FOUND = 1, 0
_OTHERS_TOLD = 5

_Filters = dict[str, str]


def why(
    targets: Sequence[Target], asked: str | None, filters: _Filters, as_json: bool, utc: bool
) -> int:
    """0, or 1 where there is no such incident. `filters` are those of /incidents."""
    moment = None if asked is None else asked_time(asked, time.time_ns(), utc)
    if asked is not None and moment is None:
        if filters:
            raise FlapdError("an ID names one incident: it goes with no option that narrows down")
        return _tell(targets, asked, as_json, utc)
    chosen = _latest(targets, filters) if moment is None else _at(targets, moment, filters)
    if chosen is None:
        print_line(_no_incident(targets, moment, filters))
        return _NONE
    return _tell(targets, chosen.id, as_json, utc)


def _tell(targets: Sequence[Target], incident_id: str, as_json: bool, utc: bool) -> int:
    body = ask(targets, f"/api/v1/incidents/{quote(incident_id, safe='')}")
    if as_json:
        print_json(body)
        return _FOUND
    told = decoded(body, IncidentDetail)
    if told.id != incident_id:
        note(f"{incident_id} turned out to be part of {told.id}")
    print_why(of_fleet(told), utc)
    return _FOUND


def _found(targets: Sequence[Target], filters: _Filters) -> list[IncidentAnswer]:
    return decoded(ask(targets, "/api/v1/incidents", filters), IncidentsAnswer).items


def _latest(targets: Sequence[Target], filters: _Filters) -> IncidentAnswer | None:
    return next(iter(_found(targets, {**filters, "limit": "1"})), None)


def _at(targets: Sequence[Target], asked: AskedTime, filters: _Filters) -> IncidentAnswer | None:
    """The incident of that time, else the nearest; what was chosen is told."""
    note(f"looking at {asked.said}")
    there = _found(targets, {**filters, **_span(asked.first_ns, asked.last_ns)})
    if not there:
        around = _span(asked.first_ns - _NEAR_NS, asked.last_ns + _NEAR_NS)
        there = _found(targets, {**filters, **around})
        if there:
            note("there is none at that time; the nearest one is told")
    there.sort(key=lambda one: _away_ns(one, asked))
    if len(there) > 1:
        others = ", ".join(one.id for one in there[1 : 1 + _OTHERS_TOLD])
        note(f"and there are others near it: {others}")
    return there[0] if there else None


def _span(first_ns: int, last_ns: int) -> _Filters:
    return {"since": rfc3339(max(0, first_ns)), "until": rfc3339(max(0, last_ns) + 1000)}


def _away_ns(incident: IncidentAnswer, asked: AskedTime) -> int:
    """From its beginning to the time asked for; of those that began after it, the first."""
    begin_ns = 0 if incident.begin is None else unix_ns(incident.begin)
    return max(begin_ns - asked.last_ns, asked.first_ns - begin_ns, 0)


def _no_incident(targets: Sequence[Target], asked: AskedTime | None, filters: _Filters) -> str:
    job = f" of job {filters['job']}" if "job" in filters else ""
    if asked is None:
        return f"No incident{job}: nothing hurt a job that flapd knows of."
    span = _span(asked.first_ns - _NEAR_NS, asked.last_ns + _NEAR_NS)
    flaps = len(decoded(ask(targets, "/api/v1/flaps", span), Page).items)
    outages = "1 outage" if flaps == 1 else f"{flaps} outages"
    there = f"{outages} there: see `flapd flaps`" if flaps else "nor was a port down"
    return f"No incident{job} within 15 minutes of {asked.said}; {there}."
