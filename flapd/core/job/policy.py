"""Policy: every timeout in force in a job, with the interval it lies in and who says so.

What a process printed is what it took; else its environment, then NCCL's files in NCCL's order
(initEnv in src/misc/param.cc: who sets a name first wins), then the configuration, what the
release does, what jobs usually have. Whoever could not be asked widens the interval.
"""

import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from flapd.core.cost.inputs import Inputs
from flapd.core.cost.releases import (
    NO_ERROR_HANDLING,
    TORCH,
    Launcher,
    Releases,
    release,
    with_releases,
)
from flapd.core.cost.settings import JobSettings
from flapd.core.job.environment import c_integer, conf_of, number
from flapd.core.job.remarks import remarks_on
from flapd.model.finding import Setting
from flapd.model.given import Given, Source, default, exactly
from flapd.model.job import ReadFile

_RETRIES_MASK = 7
"""The field of a queue pair has three bits."""
_ERROR_HANDLING = ("TORCH_NCCL_ASYNC_ERROR_HANDLING", "NCCL_ASYNC_ERROR_HANDLING")
_TORCHRUN_ERROR_HANDLING, _LIBRARY_ERROR_HANDLING = 1, 3
_UNREAD: Inputs = Inputs(gpus=default(1, 1, 1), down_seconds=default(0.0, 0.0, 0.0))


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one job's settings."""

    environment: Mapping[str, str] | None = None
    """Of one of its ranks, as far as it may be kept; None: it could not be read."""
    conf_files: tuple[ReadFile, ...] = ()
    """In NCCL's order: conf_files_of."""
    told: tuple[Setting, ...] = ()
    log_timeouts_seconds: tuple[float, ...] = ()
    """Of its process groups, from messages: Fault.timeout_seconds of watchdogs."""
    dump_timeouts_seconds: tuple[float, ...] = ()
    nccl: str | None = None
    torch: str | None = None
    launcher: Launcher | None = None
    configuration: JobSettings = JobSettings()


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """The timeouts in force; infinite where there is none."""

    ib_timeout: Given[int]
    retry_cnt: Given[int]
    watchdog_seconds: Given[float]
    """The shortest of its groups fires first."""
    heartbeat_seconds: Given[float]
    error_handling: Given[int]
    coordinated: Given[bool]
    failover: Given[bool]
    propagation_seconds: Given[float]
    poll_seconds: Given[float]
    remarks: tuple[str, ...]
    """What is odd about them, in sentences."""

    def applied_to(self, inputs: Inputs) -> Inputs:
        """The inputs with this policy, but for what somebody asked for by an option."""
        found: dict[str, Given[Any]] = {
            name: getattr(self, name)
            for name in self.__struct_fields__
            if name in Inputs.__struct_fields__ and getattr(inputs, name).source != "option"
        }
        return replace(inputs, **found)


def conf_files_of(environment: Mapping[str, str], home: str | None) -> tuple[str, ...]:
    """The files NCCL reads, in its order: NCCL_CONF_FILE is instead of the one at home."""
    own = environment.get("NCCL_CONF_FILE") or (f"{home}/.nccl.conf" if home else None)
    return (*([own] if own else []), "/etc/nccl.conf")


def policy_in_force(evidence: Evidence) -> Policy:
    settings = list(_settings_of(evidence))
    releases = _releases(evidence, settings)
    said = replace(_UNREAD, **_said(evidence, settings))
    known = with_releases(said, releases)
    if not _is_complete(evidence):
        known = replace(known, ib_timeout=_widened(known.ib_timeout))
    return Policy(
        ib_timeout=known.ib_timeout,
        retry_cnt=known.retry_cnt,
        watchdog_seconds=known.watchdog_seconds,
        heartbeat_seconds=_heartbeat(settings, releases.torch),
        error_handling=_error_handling(settings, releases),
        coordinated=known.coordinated,
        failover=known.failover,
        propagation_seconds=known.propagation_seconds,
        poll_seconds=known.poll_seconds,
        remarks=tuple(remarks_on(known, settings)),
    )


def _settings_of(evidence: Evidence) -> Iterator[tuple[Source, Mapping[str, str]]]:
    """Who sets names, the first wins."""
    yield "log", {one.name: one.value for one in evidence.told}
    yield "environment", evidence.environment or {}
    for file in evidence.conf_files:
        yield "conf_file", conf_of(file.text or "")


def _said(
    evidence: Evidence, settings: Iterable[tuple[Source, Mapping[str, str]]]
) -> dict[str, Given[Any]]:
    """Fields of Inputs that somebody said something of."""
    job = evidence.configuration
    watchdog = job.watchdog
    found: dict[str, Given[Any] | None] = {
        "ib_timeout": _integer(settings, "NCCL_IB_TIMEOUT") or _configured(job.ib_timeout),
        "retry_cnt": _retries(_integer(settings, "NCCL_IB_RETRY_CNT"))
        or _configured(job.ib_retry_cnt),
        "watchdog_seconds": _group_timeout(evidence, settings)
        or _configured(None if watchdog is None else watchdog.seconds),
        "failover": _failover(_integer(settings, "NCCL_IB_RESILIENCY_PORT_FAILOVER")),
    }
    return {name: given for name, given in found.items() if given is not None}


def _integer(
    settings: Iterable[tuple[Source, Mapping[str, str]]], *names: str
) -> Given[int] | None:
    """Of the first who sets the name; None also where that is no number."""
    for source, values in settings:
        written = next((values[name] for name in names if values.get(name)), None)
        if written is not None:
            value = c_integer(written)
            return None if value is None else exactly(value, source)
    return None


def _configured(value: Any) -> Given[Any] | None:
    return None if value is None else exactly(value, "configuration")


def _retries(given: Given[int] | None) -> Given[int] | None:
    if given is None or 0 <= given.value <= _RETRIES_MASK:
        return given
    kept = given.value & _RETRIES_MASK
    return Given(kept, kept, _RETRIES_MASK, given.source)


def _failover(given: Given[int] | None) -> Given[bool] | None:
    return None if given is None else exactly(given.value != 0, given.source)


def _group_timeout(
    evidence: Evidence, settings: Iterable[tuple[Source, Mapping[str, str]]]
) -> Given[float] | None:
    minutes = _integer(settings, "DEEPSPEED_TIMEOUT")
    printed = (number({"": one.value}, "") for one in _timeouts_told(evidence))
    known: tuple[tuple[Source, list[float]], ...] = (
        ("log", [*evidence.log_timeouts_seconds, *(ms / 1000 for ms in printed if ms)]),
        ("dump", list(evidence.dump_timeouts_seconds)),
        ("environment", [] if minutes is None else [minutes.value * 60.0]),
    )
    source, values = next((one for one in known if one[1]), ("log", []))
    return Given(min(values), min(values), max(values), source) if values else None


def _timeouts_told(evidence: Evidence) -> Iterator[Setting]:
    return (one for one in evidence.told if one.name == "group_timeout_ms")


def _releases(evidence: Evidence, settings: list[tuple[Source, Mapping[str, str]]]) -> Releases:
    environment = evidence.environment or {}
    launcher: Launcher | None = evidence.launcher
    if launcher is None and "TORCHELASTIC_RUN_ID" in environment:
        launcher = "torchrun"
    elif launcher is None and "SLURM_JOB_ID" in environment:
        launcher = "slurm"
    handling = _integer(settings, *_ERROR_HANDLING)
    return Releases(
        nccl=settings[0][1].get("nccl") or evidence.nccl,
        torch=evidence.torch,
        launcher=launcher,
        error_handling=None if handling is None else handling.value,
    )


def _is_complete(evidence: Evidence) -> bool:
    """All were asked who could have set a timeout."""
    return (
        evidence.environment is not None
        and bool(evidence.conf_files)
        and all(file.text is not None for file in evidence.conf_files)
        and not evidence.environment.get("NCCL_ENV_PLUGIN")
    )


def _widened(timeout: Given[int]) -> Given[int]:
    """Images of some clouds set a timeout of their own."""
    if timeout.source not in ("version", "default"):
        return timeout
    usual = _UNREAD.ib_timeout
    return replace(timeout, low=min(timeout.low, usual.low), high=max(timeout.high, usual.high))


def _heartbeat(settings: list[tuple[Source, Mapping[str, str]]], torch: str | None) -> Given[float]:
    monitoring = _integer(settings, "TORCH_NCCL_ENABLE_MONITORING")
    if monitoring is not None and monitoring.value == 0:
        return exactly(math.inf, monitoring.source)
    seconds = _integer(settings, "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC")
    if seconds is not None:
        return exactly(float(seconds.value), seconds.source)
    if torch is None:
        return default(TORCH[-1].heartbeat, TORCH[1].heartbeat, math.inf)
    row = [row for row in TORCH if row.since <= release(torch)][-1]
    return exactly(row.heartbeat or math.inf, "version")


def _error_handling(
    settings: list[tuple[Source, Mapping[str, str]]], releases: Releases
) -> Given[int]:
    said = _integer(settings, *_ERROR_HANDLING)
    if said is not None:
        return said
    torchrun = releases.launcher == "torchrun"
    usual = _TORCHRUN_ERROR_HANDLING if torchrun else _LIBRARY_ERROR_HANDLING
    return default(usual, NO_ERROR_HANDLING, _LIBRARY_ERROR_HANDLING)
