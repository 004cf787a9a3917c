"""Words for incidents: verdicts and money as people say them in a terminal."""

from flapd.cli.job_answers import IncidentAnswer, Money
from flapd.cli.text import amount
from flapd.serve import incident_words

VERDICT_STYLES = {"caused": "bold red", "likely": "red", "unknown": "yellow", "elsewhere": "yellow"}


def money(cost: Money | None) -> str:
    return "" if cost is None else f"{amount(cost.likely, 2)} {cost.currency}"


def ports_of(item: IncidentAnswer) -> list[str]:
    """Of its possible causes, the most probable first."""
    return list(dict.fromkeys(cause.port for cause in item.causes))


def verdict(incident: IncidentAnswer) -> str:
    return incident_words.verdict(incident.verdict, ports_of(incident))
