"""Words for incidents: verdicts and money as people say them in a terminal."""

from flapd.cli.job_answers import IncidentAnswer, Money
from flapd.cli.text import amount
from flapd.core.incident.words import percent
from flapd.serve import incident_words

VERDICT_STYLES = {"caused": "bold red", "likely": "red", "unknown": "yellow", "elsewhere": "yellow"}


def money(cost: Money | None) -> str:
    return "" if cost is None else f"{amount(cost.likely, 2)} {cost.currency}"


def suspects_of(item: IncidentAnswer) -> list[str]:
    """Its possible causes, the most probable first."""
    return incident_words.suspects((cause.port for cause in item.causes), item.shared_cause)


def certainty(item: IncidentAnswer) -> str:
    """That the first of them did it; empty: there is none."""
    chances = [cause.probability for cause in item.causes]
    sure = incident_words.certainty(chances, item.shared_cause)
    return "" if sure is None else percent(sure)


def verdict(incident: IncidentAnswer) -> str:
    return incident_words.verdict(incident.verdict, suspects_of(incident))
