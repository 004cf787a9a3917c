"""What lists may be asked for: their parameters, and the queries these make."""

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from flapd.model.event import CAUSES, Kind, Layer, Seen, Status
from flapd.model.fault import FAULT_KINDS
from flapd.model.incident import VERDICTS
from flapd.model.job import JobKind
from flapd.model.loss import REGIMES
from flapd.model.stall import STALL_CLASSES
from flapd.serve.parameter import Parameter, bad, choice, instant, of_jobs, span, text, whole
from flapd.store.flap_query import FlapQuery

_T = TypeVar("_T")

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1000

SPAN_PARAMETERS = (instant("since"), instant("until"))
PAGE_PARAMETERS = (
    whole("limit", 1, LARGEST_LIMIT, DEFAULT_LIMIT),
    text("cursor", "`next` of the page before"),
)

_JOB = text("job", "the id of a job")

FLAP_PARAMETERS: tuple[Parameter, ...] = (
    text("port", "a port such as mlx5_0/1"),
    text("guid", "the GUID of a port"),
    span("min_down"),
    choice("kind", get_args(Kind)),
    choice("status", get_args(Status)),
    choice("cause", CAUSES),
    choice("layer", get_args(Layer)),
    choice("seen", get_args(Seen)),
    of_jobs(_JOB),
    *SPAN_PARAMETERS,
    *PAGE_PARAMETERS,
)

JOB_PARAMETERS = (
    _JOB,
    choice("kind", get_args(JobKind)),
    *SPAN_PARAMETERS,
    *PAGE_PARAMETERS,
)
FAULT_PARAMETERS = (
    choice("kind", FAULT_KINDS),
    _JOB,
    whole("rank"),
    text("host", "a host as its log lines call it"),
    *SPAN_PARAMETERS,
    *PAGE_PARAMETERS,
)
STALL_PARAMETERS = (
    _JOB,
    choice("class", STALL_CLASSES),
    *SPAN_PARAMETERS,
    *PAGE_PARAMETERS,
)
INCIDENT_PARAMETERS = (
    _JOB,
    choice("verdict", VERDICTS),
    choice("regime", REGIMES),
    choice("status", ("open", "closed")),
    text("port", "a port such as mlx5_0/1"),
    choice("cause", CAUSES),
    span("min_down"),
    *SPAN_PARAMETERS,
    *PAGE_PARAMETERS,
)

_NAMED_OTHERWISE = {
    "class": "stall_class",
    "since": "since_unix_ns",
    "until": "until_unix_ns",
    "min_down": "min_down_ns",
}


def flap_query(values: Mapping[str, Any]) -> FlapQuery:
    """The outages asked for by the parameters of /flaps."""
    return query(FlapQuery, values)


def query(kind: type[_T], values: Mapping[str, Any]) -> _T:
    """What the parameters of a list ask for."""
    refuse_backwards(values["since"], values["until"])
    return kind(**{_NAMED_OTHERWISE.get(name, name): value for name, value in values.items()})


def refuse_backwards(since_unix_ns: int | None, until_unix_ns: int | None) -> None:
    if since_unix_ns is not None and until_unix_ns is not None and until_unix_ns < since_unix_ns:
        raise bad("until", "a time after `since`")
