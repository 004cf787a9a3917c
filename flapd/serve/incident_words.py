"""Words for incidents, the same on the page and in a terminal."""

from collections.abc import Sequence

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


def verdict(name: str, ports: Sequence[str]) -> str:
    """`ports`: of its possible causes, the most probable first."""
    port = ports[0] if ports else "a flap"
    return _VERDICTS.get(name, words(name)).format(port=port)
