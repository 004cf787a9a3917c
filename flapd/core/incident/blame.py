"""Blame: how likely each flap is to have caused one symptom.

A marked, mutually exciting point process declustered by probability: flap i has the weight
pi(D_i) * g(lag_i), everything else the rate of such symptoms without a flap.
"""

import math
from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from flapd.core.cost.budget import DEATH_BEFORE_BUDGET
from flapd.core.cost.chance import met_by_chance, shares_of_blame
from flapd.core.incident.deeds import kills_so, others_per_second, stalls_so
from flapd.core.incident.evidence import begin_ns, end_ns
from flapd.core.incident.other import other_cause, weak_cause
from flapd.core.incident.scene import Scene
from flapd.core.incident.starts import (
    MISSED_PORT,
    START_UP_SECONDS,
    down_at_start,
    is_of_start,
)
from flapd.core.incident.windows import (
    CLOCK_SECONDS,
    Window,
    death_window,
    error_window,
    lag_of,
    timeout_window,
    window_of_stall,
)
from flapd.model.event import Outage
from flapd.model.fault import Fault
from flapd.model.incident import Verdict
from flapd.model.stall import Stall
from flapd.model.times import SECOND_NS

CAUSED, LIKELY = 0.9, 0.5
MOST_CHANCE = 0.05
"""A flap that stands there by accident more often than that is not said to be the cause."""

LEAST_DEED = 2 * DEATH_BEFORE_BUDGET
"""What no more than the floor of the model allows proves nothing, however near it stands."""
FITTING_DEED = 0.5
"""That a stall ends with the path, within one nominal interval."""

_ANOTHER_SEEN = 1000.0
"""So much more likely are other causes once there is positive evidence of one."""
_NOTICED_SECONDS = 2.0
"""From the transport's error to the framework's report of it."""


class Suspect(msgspec.Struct, frozen=True):
    outage: Outage
    lag_seconds: tuple[float, float]
    """Shortest and longest."""
    deed: float
    """pi: the chance that such a flap brings such a symptom."""
    weight: float
    """pi * g, per second."""
    start_ns: int | None = None
    """Of the job, where the port was down already when it was started."""


class Share(msgspec.Struct, frozen=True):
    outage: Outage
    probability: float
    together: float
    """That it was this one or one that was down at the same time: nobody can tell them apart."""
    chance: float
    """p0: that a flap of these ports stands as well there by accident."""
    lag_seconds: float
    deed: float
    """pi: the chance that such a flap brings such a symptom."""
    start_ns: int | None = None
    """Of the job, in unix time, where the port was down already; None: it went down later."""


class Blame(msgspec.Struct, frozen=True):
    symptom: Fault | Stall
    shares: tuple[Share, ...]
    """The most probable first; those that cannot have done it are not in it."""
    window: Window
    another: str | None
    """Positive evidence of another cause, in words."""
    weak: str | None
    """What explains it where no flap does."""

    @property
    def top(self) -> Share | None:
        return max(self.shares, key=lambda one: one.together, default=None)

    @property
    def probability(self) -> float:
        return 0.0 if self.top is None else self.top.together

    @property
    def verdict(self) -> Verdict | None:
        """None: no flap can have done it, and nothing else is seen that did."""
        if self.top is not None and self.probability >= LIKELY and self.top.deed > LEAST_DEED:
            return "caused" if self._is_sure(self.top) else "likely"
        if self.another or self.weak:
            return "not_fabric"
        return "coincident" if self.shares else None

    @property
    def is_blamed(self) -> bool:
        """A flap did it, as far as anybody can tell."""
        return self.verdict in ("caused", "likely")

    def _is_sure(self, top: Share) -> bool:
        """Where traffic paused anyway when the port went down, the end is seen and fits as well."""
        paused = isinstance(self.symptom, Stall) and self.symptom.expected_seconds > 0
        seen = not isinstance(self.symptom, Stall) or not self.symptom.end_unseen_ns
        fits = (top.deed >= FITTING_DEED and seen) or not paused
        return fits and self.probability >= CAUSED and top.chance <= MOST_CHANCE


def time_ns(symptom: Fault | Stall) -> int:
    """Unix time; of a stall its begin."""
    if isinstance(symptom, Stall):
        return symptom.begin_unix_ns
    assert symptom.time_ns is not None
    return symptom.time_ns


def blame(symptom: Fault | Stall, scene: Scene) -> Blame:
    window = window_of(symptom, scene)
    another = other_cause(symptom, scene) or scene.other_causes.get(symptom.id)
    groups = [_at_one_price(group) for group in _at_once(_suspects(symptom, scene, window), scene)]
    others = others_per_second(symptom, scene) * (_ANOTHER_SEEN if another else 1.0)
    blamed = shares_of_blame([_sum(group) for group in groups], others)
    shares = [
        Share(
            outage=one.outage,
            probability=together * one.weight / _sum(group),
            together=together,
            chance=_chance(one, symptom, scene, window),
            lag_seconds=sum(one.lag_seconds) / 2,
            deed=one.deed,
            start_ns=one.start_ns,
        )
        for group, together in zip(groups, blamed, strict=False)
        for one in group
    ]
    shares.sort(key=lambda share: (-share.probability, share.outage.id))
    return Blame(symptom, tuple(shares), window, another, weak_cause(symptom, scene))


def _suspects(symptom: Fault | Stall, scene: Scene, window: Window) -> list[Suspect]:
    """In order of time, so that the sums come out the same."""
    found = _into_which_it_started(symptom, scene)
    for outage in _near(symptom, scene, window):
        lag = _lags(symptom, outage)
        if lag[1] < window.low or lag[0] > window.high:
            continue
        deed = _deed(symptom, outage, scene)
        weight = window.density(*lag) * deed
        if weight > 0:
            known = found.get(outage.id)
            if known is None or weight > known.weight:
                found[outage.id] = Suspect(outage, lag, deed, weight)
    return sorted(found.values(), key=lambda one: (begin_ns(one.outage), one.outage.id))


def _into_which_it_started(symptom: Fault | Stall, scene: Scene) -> dict[str, Suspect]:
    """Outages by id: to a job that is just starting it is the same how long they went on before."""
    if isinstance(symptom, Stall) or not is_of_start(symptom, scene):
        return {}
    return {
        outage.id: Suspect(
            outage,
            _lags(symptom, outage),
            MISSED_PORT,
            MISSED_PORT / START_UP_SECONDS,
            start_ns,
        )
        for outage, start_ns in down_at_start(symptom, scene)
    }


def _near(symptom: Fault | Stall, scene: Scene, window: Window) -> Sequence[Outage]:
    """Those that can be in the window at all."""
    clock_ns = 0 if isinstance(symptom, Stall) else symptom.clock_error_ns
    slack_ns = clock_ns + round(2 * _NOTICED_SECONDS * SECOND_NS)
    at_ns = time_ns(symptom)
    return scene.in_order.between(
        at_ns - round(window.high * SECOND_NS) - slack_ns,
        at_ns - round(window.low * SECOND_NS) + slack_ns,
    )


def _at_once(suspects: list[Suspect], scene: Scene) -> list[list[Suspect]]:
    """Those that were down at the same time are one trial: they have one cause, or one effect."""
    groups: list[list[Suspect]] = []
    until_ns = 0
    for one in suspects:
        last_ns = end_ns(one.outage) or scene.until_ns
        if groups and begin_ns(one.outage) <= until_ns:
            groups[-1].append(one)
            until_ns = max(until_ns, last_ns)
        else:
            groups.append([one])
            until_ns = last_ns
    return groups


def _at_one_price(group: list[Suspect]) -> list[Suspect]:
    """Together they weigh as much as the heaviest."""
    part = max(one.weight for one in group) / _sum(group)
    return [replace(one, weight=one.weight * part) for one in group]


def _sum(group: list[Suspect]) -> float:
    return math.fsum(one.weight for one in group)


def window_of(symptom: Fault | Stall, scene: Scene) -> Window:
    terms = scene.terms
    if isinstance(symptom, Stall):
        return window_of_stall(symptom)
    ran = _ran_seconds(symptom, scene)
    if ran is not None:
        return timeout_window(ran, terms.budget, max(CLOCK_SECONDS, _clock_seconds(symptom)))
    errors = error_window(terms.budget, terms.tick_seconds)
    if symptom.kind == "process_death":
        return death_window(errors, terms.inputs.propagation_seconds.high)
    return errors


def _ran_seconds(fault: Fault, scene: Scene) -> float | None:
    """How long something waited that ran into a timeout; None: that is not what happened."""
    if fault.kind == "watchdog_timeout":
        said = fault.ran_seconds if fault.ran_seconds is not None else fault.timeout_seconds
        return scene.terms.inputs.watchdog_seconds.value if said is None else said
    if fault.kind == "heartbeat":
        heartbeat = scene.terms.policy.get("heartbeat_seconds")
        usual = scene.terms.inputs.watchdog_seconds if heartbeat is None else heartbeat
        return usual.value if fault.timeout_seconds is None else fault.timeout_seconds
    return None


def _clock_seconds(fault: Fault) -> float:
    return fault.clock_error_ns / SECOND_NS


def _lags(symptom: Fault | Stall, outage: Outage) -> tuple[float, float]:
    """From the down to the symptom: the shortest and the longest that it can be."""
    low, high = lag_of(time_ns(symptom), outage)
    if isinstance(symptom, Stall) or symptom.kind in ("watchdog_timeout", "heartbeat"):
        return low, high
    noticed = _NOTICED_SECONDS if symptom.kind == "nccl_error" else 0.0
    return low - _clock_seconds(symptom) - noticed, high + _clock_seconds(symptom)


def _deed(symptom: Fault | Stall, outage: Outage, scene: Scene) -> float:
    if isinstance(symptom, Stall):
        return stalls_so(symptom, outage, scene)
    return kills_so(symptom, outage, scene)


def _chance(one: Suspect, symptom: Fault | Stall, scene: Scene, window: Window) -> float:
    low, high = one.lag_seconds
    if one.start_ns is None:
        omega = window.width_of(window.density(low, high)) + (high - low)
    else:
        omega = high  # any flap since then that went on would stand there as well
    rate = scene.background.per_second(begin_ns(one.outage), time_ns(symptom))
    return met_by_chance(rate, omega)
