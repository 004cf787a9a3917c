"""Words for incidents: verdicts, shares and money as people say them."""

from flapd.cli.job_answers import IncidentAnswer, Money
from flapd.cli.text import amount

VERDICT_STYLES = {"caused": "bold red", "likely": "red", "unknown": "yellow", "elsewhere": "yellow"}

_SOURCES = {
    "option": "asked for",
    "conf_file": "nccl.conf",
    "queue_pair": "its queue pairs",
    "version": "by its release",
    "preset": "assumed",
    "default": "assumed",
}


def words(name: str) -> str:
    return name.replace("_", " ")


def source(name: str) -> str:
    """Who says so."""
    return _SOURCES.get(name, words(name))


def share(probability: float) -> str:
    """As `98.1 %`; never certain, and never nothing where there is something."""
    if 0 < probability < 0.0001:
        return "under 0.01 %"
    if 0.9995 <= probability < 1:
        return "over 99.9 %"
    return f"{100 * probability:.{1 if probability >= 0.01 else 2}f} %"


def money(cost: Money | None) -> str:
    return "" if cost is None else f"{amount(cost.likely, 2)} {cost.currency}"


def ports_of(item: IncidentAnswer) -> list[str]:
    """Of its possible causes, the most probable first."""
    return list(dict.fromkeys(cause.port for cause in item.causes))


def verdict(incident: IncidentAnswer) -> str:
    ports = ports_of(incident)
    port = ports[0] if ports else "a flap"
    said = {
        "caused": f"caused by {port}",
        "likely": f"most likely caused by {port}",
        "coincident": f"{port} flapped beside it, and most likely is not the cause",
        "elsewhere": "no port of this node did it, the cause is elsewhere",
        "not_fabric": "it was not the fabric",
        "no_job": "no job used the port",
        "unknown": "the cause is not known, as what would tell it could not be seen",
    }
    return said.get(incident.verdict, words(incident.verdict))
