"""What lists may be asked for: the parameters of /flaps, and the query they make."""

from collections.abc import Mapping
from typing import Any, get_args

from flapd.model.event import CAUSES, Kind, Layer, Seen, Status
from flapd.serve.parameter import Parameter, bad, choice, instant, span, text, whole
from flapd.store.flap_query import FlapQuery

DEFAULT_LIMIT = 100
LARGEST_LIMIT = 1000

SPAN_PARAMETERS = (instant("since"), instant("until"))
PAGE_PARAMETERS = (
    whole("limit", 1, LARGEST_LIMIT, DEFAULT_LIMIT),
    text("cursor", "`next` of the page before"),
)

FLAP_PARAMETERS: tuple[Parameter, ...] = (
    text("port", "a port such as mlx5_0/1"),
    text("guid", "the GUID of a port"),
    span("min_down"),
    choice("kind", get_args(Kind)),
    choice("status", get_args(Status)),
    choice("cause", CAUSES),
    choice("layer", get_args(Layer)),
    choice("seen", get_args(Seen)),
    *SPAN_PARAMETERS,
    *PAGE_PARAMETERS,
)

_NAMED_OTHERWISE = {
    "since": "since_unix_ns",
    "until": "until_unix_ns",
    "min_down": "min_down_ns",
}


def flap_query(values: Mapping[str, Any]) -> FlapQuery:
    """The outages asked for by the parameters of /flaps."""
    refuse_backwards(values["since"], values["until"])
    return FlapQuery(**{_NAMED_OTHERWISE.get(name, name): value for name, value in values.items()})


def refuse_backwards(since_unix_ns: int | None, until_unix_ns: int | None) -> None:
    if since_unix_ns is not None and until_unix_ns is not None and until_unix_ns < since_unix_ns:
        raise bad("until", "a time after `since`")
