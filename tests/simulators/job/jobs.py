"""Jobs that tests of the simulated job share."""

from typing import Any

from simulators.job.job import simulate
from simulators.job.record import Run
from simulators.job.spec import JobSpec, Phase, Software, Steps, Transport
from simulators.job.truth import Symptom

NOMINAL = Transport(spread=(1.0, 1.0))
"""Timers that take exactly their nominal time."""
IN_FULL_FLOW = Steps(phases=(Phase(0.0, 1e6),), collectives=1_000_000, ahead_seconds=0.0)
"""Data moves at every moment."""


def run_of(**spec: Any) -> Run:
    spec.setdefault("nodes", 4)
    spec.setdefault("restarts", 0)
    return simulate(JobSpec(**spec))


def the_symptom(run: Run) -> Symptom:
    (symptom,) = [one for one in run.truth.symptoms if one.cause != "checkpoint"]
    return symptom


RELEASES = [
    Software(torch=torch, nccl=nccl, nccl_debug="INFO")
    for torch, nccl in (
        ("1.13.1", "2.14.3"),
        ("2.1.2", "2.18.1"),
        ("2.2.0", "2.19.3"),
        ("2.3.1", "2.20.5"),
        ("2.4.0", "2.20.5"),
        ("2.5.1", "2.21.5"),
        ("2.6.0", "2.22.3"),
        ("2.7.0", "2.26.2"),
        ("2.8.0", "2.27.3"),
        ("2.9.1", "2.28.9"),
        ("2.9.1", "2.30.7"),
    )
]
