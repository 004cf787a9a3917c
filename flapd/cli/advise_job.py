"""The job of an agent whose timeouts are in force, and what they make of the model's inputs."""

import math
from collections.abc import Sequence
from typing import Any, get_args, get_type_hints

import msgspec
from msgspec.structs import replace

from flapd.cli.client import NotServedError, ask
from flapd.cli.output import decoded, note
from flapd.cli.target import Target
from flapd.core.cost.inputs import Inputs
from flapd.model.errors import CouldNotFindOutError, FlapdError
from flapd.model.given import Given, Source


class JobAnswer(msgspec.Struct, frozen=True):
    """What is needed of an item of /jobs."""

    job: str
    until: str | None = None
    world_size: int | None = None
    world_size_source: str | None = None
    policy: dict[str, dict[str, Any]] = {}
    """By name of the input; null is for ever."""

    @property
    def size_source(self) -> Source:
        said = self.world_size_source
        return next((known for known in get_args(Source) if known == said), "measured")


class _Jobs(msgspec.Struct):
    items: list[JobAnswer]


def job_of(targets: Sequence[Target], name: str | None) -> JobAnswer | None:
    """The one of that name, else the only one that runs; None where that is not to be told.

    FlapdError where there is none of that name.
    """
    asked = {"limit": "1000"} if name is None else {"limit": "1", "job": name}
    try:
        found = decoded(ask(targets, "/api/v1/jobs", asked), _Jobs).items
    except NotServedError:
        found = []
    except CouldNotFindOutError as error:
        if name is not None:
            raise
        note(f"whose timeouts are in force is not known: {error}")
        return None
    if name is not None:
        if not found:
            raise FlapdError(f"--job {name}: no such job is known")
        return found[0]
    running = {one.job: one for one in found if one.until is None}
    if len(running) > 1:
        note(f"{len(running)} jobs run here: --job J says whose timeouts to go by")
    return next(iter(running.values())) if len(running) == 1 else None


def with_job(inputs: Inputs, job: JobAnswer) -> Inputs:
    """As its policy has it, but for what an option says and what is not understood."""
    found = {}
    for name, told in job.policy.items():
        if name in _FIELDS and getattr(inputs, name).source != "option":
            given = _given(_FIELDS[name], told)
            if given is not None:
                found[name] = given
    return replace(inputs, **found)


_FIELDS = get_type_hints(Inputs)


def _given(kind: Any, told: dict[str, Any]) -> Given[Any] | None:
    endless = {key: math.inf if value is None else value for key, value in told.items()}
    try:
        given: Given[Any] = msgspec.convert(endless, kind)
    except msgspec.ValidationError:  # an agent of another version
        return None
    return given
