"""Words for incidents, the same on the page and in a terminal."""

from collections.abc import Iterable, Sequence

_VERDICTS = {
    "caused": "caused by {port}",
    "likely": "most likely caused by {port}",
    "coincident": "{port} flapped beside it, and most likely is not the cause",
    "elsewhere": "no port of this node did it, the cause is elsewhere",
    "not_fabric": "it was not the fabric",
    "no_job": "no job used the port",
    "unknown": "the cause is not known, as what would tell it could not be seen",
}
_SOURCES = {
    "option": "asked for",
    "conf_file": "nccl.conf",
    "queue_pair": "its queue pairs",
    "version": "by its release",
    "preset": "assumed",
    "default": "assumed",
}


def words(name: str) -> str:
    """Of a name as it stands in JSON."""
    return name.replace("_", " ")


def source(name: str) -> str:
    """Who says so."""
    return _SOURCES.get(name, words(name))


def verdict(name: str, suspects: Sequence[str]) -> str:
    """`suspects`: its possible causes, the most probable first."""
    port = suspects[0] if suspects else "a flap"
    return _VERDICTS.get(name, words(name)).format(port=port)


def suspects(ports: Iterable[str], shared_cause: str | None) -> list[str]:
    """Each port once; none of them where something took many down at once: that is named."""
    return list(dict.fromkeys(ports)) if shared_cause is None else [shared_cause]


def certainty(probabilities: Sequence[float], shared_cause: str | None) -> float | None:
    """That the first suspect did it; None: there is none. What is shared did it by any port."""
    if not probabilities:
        return None
    return probabilities[0] if shared_cause is None else min(1.0, sum(probabilities))


def is_end_seen(blind_to: Sequence[str]) -> bool:
    """Of a stall: somebody looked when traffic came back."""
    return "end" not in blind_to


def flows_again(seconds: float | None, usual_seconds: float, blind_to: Sequence[str]) -> str:
    """What is told at the end of a stall."""
    after = "" if seconds is None else f" after {seconds:,.2f} s"
    if not is_end_seen(blind_to):
        return f"traffic is seen again{after}; nobody looked when it came back"
    usual = f", {usual_seconds:.2g} s are usual" if usual_seconds else ""
    return f"traffic flows{after}{usual}"
