"""The headline: one link of a job of 1,024 GPUs goes down once an hour, and what that costs it.

A simulated job keeps its own books of what it loses. One of its nodes is shown to the engine as its
counters and processes would show it, without any log; what flapd claims must be what the books say.
Checkpoints are known by the pauses of the traffic and what is configured, or by the pauses alone.
Two hours run with every `make test`, on 1,024 nodes of one GPU; with `long` a whole day on 128 of
eight. Far from whatever happens one sweep of ten is shown.
"""

import sys
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from flapd.core.cost.settings import JobSettings
from flapd.core.engine import Engine
from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import parse_duration
from flapd.model.incident import Incident
from flapd.model.loss import Regime
from simulators.job.happenings import Outage
from simulators.job.job import simulate
from simulators.job.record import Run
from simulators.job.spec import JobSpec, Pause, Software, Transport
from tests.system.replayed import Seen, observations

GPUS = 1024
HOUR = 3600.0
FIRST_AT = 1800.0
CHECKPOINT = Pause(1800.0, 30.0)
CLOSE = 60.0
WITHIN = 0.05
PRICE = 2.5 / HOUR
CONFIGURED = JobSettings(checkpoint_interval=parse_duration("30m"))
BLAMED = ("caused", "likely")
NOMINAL = (1.0, 1.0)
SPECIFIED = (1.0, 4.0)
SINCE_2_23 = Software(torch="2.8.0", nccl="2.27.3")
BEFORE_2_23 = Software(torch="2.4.0", nccl="2.20.5")


class Policy(NamedTuple):
    down: float
    regime: Regime
    software: Software
    ib_timeout: int | None = None
    """None: the release's own, 20 or 18; 0: nothing is ever sent again, a silent hang."""


POLICIES = {
    "A": Policy(2.0, "absorbed", SINCE_2_23),
    "B": Policy(10.0, "transport_abort", BEFORE_2_23),
    "D": Policy(60.0, "absorbed", SINCE_2_23, 22),
    "I": Policy(2.0, "watchdog", SINCE_2_23, 0),
}


class Outcome(NamedTuple):
    flaps: int
    booked: float
    """GPU-seconds, by the job's own books."""
    claimed: float
    """By the incidents that blame the link."""
    counted: float
    """By `flapd_gpu_seconds_claimed_total`."""
    regimes: set[str | None]


def hourly(policy: Policy, hours: int, nodes: int, spread: tuple[float, float]) -> JobSpec:
    return JobSpec(
        seed=hours,
        nodes=nodes,
        ranks_per_node=GPUS // nodes,
        duration_seconds=hours * HOUR,
        transport=Transport(ib_timeout=policy.ib_timeout, spread=spread),
        software=policy.software,
        checkpoint=CHECKPOINT,
        happenings=tuple(Outage(FIRST_AT + n * HOUR, policy.down) for n in range(hours)),
    )


def outcome(run: Run, job: JobSettings, *, has_log: bool = False) -> Outcome:
    seen = Seen(0, 0.0, run.truth.end, has_log, True, 1, tuple(_moments(run)))
    engine = Engine("node000", FlapSettings(), job=job)
    told: dict[str, Incident] = {}
    for observation in observations(run, seen):
        for event in engine.step(observation):
            if isinstance(event, Incident):
                told[event.id] = event
    blamed = [one for one in told.values() if one.verdict in BLAMED]
    counted = engine.snapshot().incidents.totals.claims.values()
    outages = [one for one in run.truth.symptoms if one.cause == "outage"]
    return Outcome(
        flaps=len(outages),
        booked=sum(one.gpu_seconds for one in outages),
        claimed=sum(one.likely for i in blamed for one in i.flap_gpu_seconds.values()),
        counted=sum(claim.likely for regimes in counted for claim in regimes.values()),
        regimes={one.regime for one in blamed},
    )


def _moments(run: Run) -> Iterator[tuple[float, float]]:
    """Around each at which anything changes; a job that begins shows its rhythm."""
    edges = [at for one in run.truth.symptoms for at in (one.begin, one.end)]
    for at in (*edges, *(one.first_step for one in run.attempts)):
        yield at - CLOSE, at + CLOSE


def show(what: str, found: Outcome) -> None:
    """Seen with `pytest -s`, and beside a failure."""
    sys.stdout.write(
        f"{what:24} {found.flaps:3} flaps  booked {found.booked:12,.0f} GPU-s "
        f"{found.booked * PRICE:10,.2f} USD  claimed {found.claimed:12,.0f} GPU-s "
        f"{found.claimed * PRICE:10,.2f} USD  {found.claimed / found.booked - 1:+.2%}\n"
    )


def holds(found: Outcome, policy: Policy, flaps: int) -> None:
    assert found.flaps == flaps
    assert found.regimes == {policy.regime}
    assert found.claimed == pytest.approx(found.booked, rel=WITHIN)
    assert found.counted == pytest.approx(found.claimed)


@pytest.mark.parametrize(
    ("hours", "nodes"),
    [(2, 1024), pytest.param(24, 128, marks=pytest.mark.long)],
    ids=["two hours", "a day"],
)
@pytest.mark.parametrize("name", POLICIES)
def test_what_is_claimed_of_an_hourly_flap_is_what_the_job_lost(
    name: str, hours: int, nodes: int
) -> None:
    policy = POLICIES[name]
    found = outcome(simulate(hourly(policy, hours, nodes, NOMINAL)), CONFIGURED)

    show(f"{name}, {hours} h", found)
    holds(found, policy, hours)


@pytest.mark.long
@pytest.mark.parametrize("name", ["A", "D", "I"])
def test_it_holds_where_timers_take_as_long_as_they_may(name: str) -> None:
    policy = POLICIES[name]
    run = simulate(hourly(policy, 24, 1024, SPECIFIED))
    found = outcome(run, CONFIGURED)

    show(f"{name}, timers differ", found)
    holds(found, policy, 24)


@pytest.mark.long
@pytest.mark.parametrize("has_log", [True, False], ids=["log", "no log"])
@pytest.mark.parametrize("name", ["B", "I"])
def test_it_holds_where_nobody_said_how_often_the_job_saves(name: str, has_log: bool) -> None:
    policy = POLICIES[name]
    run = simulate(hourly(policy, 24, 1024, NOMINAL))
    found = outcome(run, JobSettings(), has_log=has_log)

    show(f"{name}, nothing configured", found)
    holds(found, policy, 24)
