"""Job metrics: totals of what hurt jobs; and the jobs that run, for those who may see them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from flapd.core.cost.timer import Timer
from flapd.core.fabric.view import PortView, Snapshot
from flapd.core.incident.view import Claim
from flapd.model.given import Given
from flapd.model.job import Job
from flapd.model.loss import REGIMES
from flapd.model.times import SECOND_NS
from flapd.serve.labelled import Labels, filled, labels_of

_NOTHING = Claim()
_TIMER = {
    "ib_timeout": "ib_timeout",
    "retry_cnt": "retry_cnt",
    "timer_floor": "floor",
    "extra_tries": "extra_tries",
    "budget_factor": "budget_factor",
}
"""Names in a policy, and in the timer that they make."""


def job_families(
    snapshot: Snapshot, views: Iterable[PortView], sees_jobs: bool
) -> Iterator[Metric]:
    """`views` are the ports as they are shown."""
    ports = list(views)
    yield from _totals(snapshot)
    yield from _claims(snapshot.incidents.totals.claims, ports)
    yield _ranks(snapshot.jobs.running, ports)
    if sees_jobs:
        yield from _running(snapshot.jobs.running)


def _totals(snapshot: Snapshot) -> Iterator[Metric]:
    jobs, incidents = snapshot.jobs.totals, snapshot.incidents
    yield _counter("flapd_faults", "What logs and counters tell of errors.", "kind", jobs.faults)
    yield _counter(
        "flapd_stalls", "Times traffic of a job stood still, and went on.", "class", jobs.stalls
    )
    yield _counter(
        "flapd_stall_seconds",
        "How long it stood still.",
        "class",
        {name: ns / SECOND_NS for name, ns in jobs.stall_ns.items()},
    )
    yield CounterMetricFamily(
        "flapd_faults_dropped",
        "Faults that were read and not kept: there were too many.",
        jobs.faults_dropped,
    )
    yield _counter(
        "flapd_incidents",
        "Incidents that are over.",
        "verdict",
        incidents.totals.incidents,
    )
    yield GaugeMetricFamily("flapd_incident_open", "Incidents that go on.", incidents.open)


def _counter(name: str, documentation: str, label: str, counts: Mapping[Any, float]) -> Metric:
    family = CounterMetricFamily(name, documentation)
    return filled(family, (({label: value}, count) for value, count in counts.items()))


def _claims(claims: Mapping[str, Mapping[Any, Claim]], ports: list[PortView]) -> Iterator[Metric]:
    """Of every port that is known, and of those that are gone and cost something."""
    labels = {view.port.name: labels_of(view) for view in ports}
    labels |= {name: _labels(name) for name in claims if name not in labels}
    told = [
        (which | {"regime": regime}, claims.get(name, {}).get(regime, _NOTHING))
        for name, which in labels.items()
        for regime in REGIMES
    ]
    yield filled(
        CounterMetricFamily(
            "flapd_gpu_seconds_claimed",
            "GPU-seconds that flaps of the port are held to have cost, by what became of jobs.",
        ),
        ((which, claim.likely) for which, claim in told),
    )
    yield filled(
        CounterMetricFamily("flapd_gpu_seconds_claimed_low", "The least that it can have been."),
        ((which, claim.low) for which, claim in told),
    )


def _labels(name: str) -> Labels:
    device, _, number = name.rpartition("/")
    return {"device": device, "port": number}


def _ranks(running: Iterable[Job], ports: list[PortView]) -> Metric:
    ranks = {view.port.key: 0 for view in ports}
    for job in running:
        for key in job.ports:
            ranks[key] = ranks.get(key, 0) + len(job.local_ranks)
    return filled(
        GaugeMetricFamily("flapd_port_job_ranks", "Ranks here of the jobs that use the port."),
        ((labels_of(view), ranks[view.port.key]) for view in ports),
    )


def _running(running: Iterable[Job]) -> Iterator[Metric]:
    jobs = list({job.job: job for job in running}.values())
    yield _gauge("flapd_job_info", "1 while the job runs here.", {job.job: 1 for job in jobs})
    yield _gauge(
        "flapd_job_world_size",
        "Ranks of the whole job.",
        {job.job: job.world_size.value for job in jobs if job.world_size is not None},
    )
    yield _gauge(
        "flapd_job_retry_budget_seconds",
        "How long the transport of the job retries by its nominal timers.",
        {job.job: budget for job in jobs if (budget := _budget_seconds(job.policy)) is not None},
    )
    yield _gauge(
        "flapd_job_watchdog_seconds",
        "Timeout of the job's collectives; infinite where there is none.",
        {
            job.job: job.policy["watchdog_seconds"].value
            for job in jobs
            if "watchdog_seconds" in job.policy
        },
    )


def _gauge(name: str, documentation: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(name, documentation)
    return filled(family, (({"job": job}, value) for job, value in values.items()))


def _budget_seconds(policy: Mapping[str, Given[Any]]) -> float | None:
    """None where it is not known what it is made of."""
    if "ib_timeout" not in policy or "retry_cnt" not in policy:
        return None
    known = {field: policy[name].value for name, field in _TIMER.items() if name in policy}
    return Timer(**known).budget_seconds
