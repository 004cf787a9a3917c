"""Price: what the policy makes of a flap, and the GPU-seconds lost to it."""

import msgspec

from flapd.core.cost.case import Case
from flapd.model.loss import Parts, Regime

HOUR_SECONDS = 3600.0
FAILOVER_PROBE_SECONDS = 0.01
"""NCCL_IB_RESILIENCY_PORT_FAILOVER_PROBE_DELAY (NCCL 2.30.7, src/transport/net_ib)."""


class Price(msgspec.Struct, frozen=True):
    """The price of one flap by the nominal timers; seconds are those of one GPU."""

    tick_seconds: float
    budget_seconds: float
    resume_seconds: float
    """When traffic flows again if nothing gave up before."""
    regime: Regime
    parts: Parts
    gpu_seconds: float
    cost: float


def price(case: Case) -> Price:
    """The model of one flap: timer, regime, loss."""
    timer = case.timer
    regime = regime_of(case)
    parts = parts_of(regime, case)
    gpu_seconds = case.gpus * parts.lost
    return Price(
        tick_seconds=timer.tick_seconds,
        budget_seconds=timer.budget_seconds,
        resume_seconds=timer.resume_seconds(case.pathless_seconds),
        regime=regime,
        parts=parts,
        gpu_seconds=gpu_seconds,
        cost=money(gpu_seconds, case.price_per_gpu_hour),
    )


def money(gpu_seconds: float, price_per_gpu_hour: float) -> float:
    return gpu_seconds / HOUR_SECONDS * price_per_gpu_hour


def regime_of(case: Case) -> Regime:
    """Who gives up first: nobody, the transport, or the watchdog."""
    if case.hang:
        return "watchdog"
    timer = case.timer
    resume, budget = timer.resume_seconds(case.pathless_seconds), timer.budget_seconds
    if resume <= min(budget, case.patience_seconds):
        return "hidden" if resume <= case.slack_seconds else "absorbed"
    if budget > case.patience_seconds:
        return "watchdog"
    if case.failover:
        return "failover"
    return "transport_abort" if case.coordinated else "watchdog"


def parts_of(regime: Regime, case: Case) -> Parts:
    """What this regime costs each GPU, whether or not it is the one to be expected."""
    if regime == "hidden":
        return Parts()
    if regime == "absorbed":
        resume = case.timer.resume_seconds(case.pathless_seconds)
        return Parts(stall=max(0.0, resume - case.slack_seconds))
    if regime == "failover":
        return Parts(stall=_failover_stall(case))
    return after_death(case, detected_after(regime, case))


def detected_after(regime: Regime, case: Case) -> float:
    """From the down until something noticed that the collective will not end."""
    patience = case.patience_seconds
    waited = case.timer.budget_seconds if regime == "transport_abort" else patience
    return waited + case.poll_seconds


def after_death(case: Case, detect_seconds: float) -> Parts:
    """What a job that died loses."""
    return Parts(
        detect=detect_seconds,
        propagation=case.propagation_seconds,
        restart=case.restart_seconds,
        rework=case.checkpoint_age_seconds,
    )


def _failover_stall(case: Case) -> float:
    """Standing still until the other port takes over, then slower until the first is back."""
    still = case.timer.budget_seconds + FAILOVER_PROBE_SECONDS
    slow = max(0.0, case.pathless_seconds - still)
    return max(0.0, still - case.slack_seconds) + case.failover_slowdown * slow
