"""Remarks: what is odd about a job's timeouts, in sentences for the person on call."""

import math
from collections.abc import Iterable, Iterator, Mapping

from flapd.core.cost.inputs import Inputs
from flapd.core.job.environment import c_integer
from flapd.model.given import Source

_NEVER_FROM = 32
_MOST_RETRIES = 7
_NUMBERS = ("NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT")


def remarks_on(
    known: Inputs, settings: Iterable[tuple[Source, Mapping[str, str]]]
) -> Iterator[str]:
    """`known` is what is in force, `settings` what was set, by whom, in order of precedence."""
    for name in _NUMBERS:
        found = next(((who, by[name]) for who, by in settings if by.get(name)), None)
        if found is not None:
            source, written = found
            yield from _on_value(name, c_integer(written), f"{name}={written[:64]} ({source})")
    yield from _on_order(known)
    if not known.coordinated.value and known.coordinated.source == "version":
        yield (
            "NCCL 2.18.1 to 2.18.6 hands no network error on: "
            "a job whose retries are used up hangs until the watchdog ends it"
        )
    if math.isinf(known.watchdog_seconds.value):
        yield "no error handling is on: nothing ends a job that hangs"


def _on_value(name: str, value: int | None, said: str) -> Iterator[str]:
    if value is None:
        yield f"{said} is no number: NCCL takes its default, or 0 in older releases"
    elif name == "NCCL_IB_TIMEOUT" and not 0 < value < _NEVER_FROM:
        yield f"{said}: 0 and everything from 32 on retry for ever, only 1 to 31 are times"
    elif name == "NCCL_IB_RETRY_CNT" and not 0 <= value <= _MOST_RETRIES:
        kept = value & _MOST_RETRIES
        yield f"{said}: the field has three bits, so that {kept} are in force"


def _on_order(known: Inputs) -> Iterator[str]:
    budget = known.likely().timer.budget_seconds
    watchdog = known.watchdog_seconds.value
    if watchdog < budget < math.inf:
        yield (
            f"the watchdog ({watchdog:g} s) fires before the transport gives up ({budget:.0f} s)"
        )
