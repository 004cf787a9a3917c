"""Job: a training job step by step from its start; whoever is early waits for the last."""

import math
import random

from simulators.job.ending import Ending, Stop
from simulators.job.flow import Flow, Paths
from simulators.job.happenings import Died, Outage, SlowLoader, WatchdogStuck, kind_of
from simulators.job.ledger import Ledger
from simulators.job.record import Attempt, PauseTaken, Record, Run, Spans, Step, Wait
from simulators.job.spec import JobSpec, Pause, Phase
from simulators.job.truth import CauseKind, JobTruth, Lost

_RESTART_JITTER = 0.05
_AT_ONCE = (Died, WatchdogStuck)
"""They stop an exchange that is under way; what a program does shows in the next one."""


def simulate(spec: JobSpec) -> Run:
    """The whole run; the same spec gives the same."""
    return _Job(spec).run()


class _OverError(Exception):
    """The attempt ended."""


class _Job:
    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self._rng = random.Random(f"{spec.seed} job")
        self._paths = Paths(spec)
        self._ledger = Ledger(spec.world_size)
        self._record = Record(spec)
        self._todo = sorted(
            (one.at_seconds, number)
            for number, one in enumerate(spec.happenings)
            if not isinstance(one, Outage)
        )
        self._now = 0.0
        self._step = 0
        self._phase = 0
        self._saved_step = 0
        self._due: dict[CauseKind, float] = {}

    def run(self) -> Run:
        spec, record = self._spec, self._record
        while self._now < spec.duration_seconds and len(record.attempts) <= spec.restarts:
            self._attempt()
        truth = JobTruth(
            job=spec.job,
            world_size=spec.world_size,
            begin=0.0,
            end=self._now,
            symptoms=tuple(record.symptoms),
            unfelt=record.unfelt(),
            steps=self._ledger.steps,
            books=self._ledger.books(),
        )
        return Run(
            spec,
            truth,
            tuple(record.attempts),
            tuple(record.steps),
            tuple(record.pauses),
            tuple(record.spans),
            tuple(record.waits),
        )

    def _attempt(self) -> None:
        begin, attempts = self._now, self._record.attempts
        if attempts:
            gone_at = attempts[-1].end.gone_at if attempts[-1].end else 0.0
            begin = max(begin - self._spec.start_up_seconds, gone_at)
        else:
            self._ledger.book("start_up", self._spec.start_up_seconds)
            self._now += self._spec.start_up_seconds
        attempts.append(Attempt(begin, self._now))
        # What befalls a process needs one.
        self._todo = [item for item in self._todo if item[0] >= begin]
        self._due = {what: self._now + pause.every_seconds for what, pause in self._planned()}
        try:
            while self._now < self._spec.duration_seconds:
                self._pause_if_due()
                self._one_step()
        except _OverError:
            self._step = self._saved_step

    def _planned(self) -> list[tuple[CauseKind, Pause]]:
        named: tuple[tuple[CauseKind, Pause | None], ...] = (
            ("checkpoint", self._spec.checkpoint),
            ("evaluation", self._spec.evaluation),
        )
        return [(what, pause) for what, pause in named if pause is not None]

    def _pause_if_due(self) -> None:
        for what, pause in self._planned():
            if self._now < self._due[what]:
                continue
            begin, self._now = self._now, self._now + pause.pause_seconds
            self._ledger.book(what, pause.pause_seconds)
            self._due[what] = self._now + pause.every_seconds
            if what == "checkpoint":
                self._ledger.saved()
                self._saved_step = self._step
            self._record.pauses.append(PauseTaken(what, begin, self._now, self._step))
            self._record.stood_still(what, (), begin, self._now)

    def _one_step(self) -> None:
        begin = self._now
        for number, phase in enumerate(self._spec.steps.phases):
            self._phase = number
            self._compute(phase)
            self._exchange(phase)
        self._step += 1
        self._ledger.step_done()
        self._record.steps.append(Step(self._step, begin, self._now))

    def _compute(self, phase: Phase) -> None:
        """Until the slowest rank has come: the largest of as many draws as there are ranks."""
        slowest = self._rng.random() ** (1 / self._spec.world_size)
        factor = 1 + self._spec.steps.jitter * (slowest + self._rng.uniform(-1, 1))
        arrival = self._now + phase.compute_seconds * factor
        while self._todo and self._todo[0][0] <= arrival:
            at, number = self._todo.pop(0)
            happening = self._spec.happenings[number]
            if isinstance(happening, SlowLoader):
                self._work_until(arrival)
                arrival += happening.late_seconds
                self._ledger.book("waiting", happening.late_seconds)
                self._record.stood_still("slow_loader", (number,), self._now, arrival)
                self._now = arrival
            else:
                self._work_until(max(self._now, at) if isinstance(happening, _AT_ONCE) else arrival)
                self._stopped_by(number, share=0.0)
        self._work_until(arrival)

    def _work_until(self, moment: float) -> None:
        self._ledger.work(moment - self._now)
        self._now = moment

    def _exchange(self, phase: Phase) -> None:
        """The data of one phase through the fabric, until it is through or never will be."""
        flow = self._paths.flow(self._now, phase.communicate_seconds)
        cut_at = self._cut_at(flow)
        for halt in flow.halts:
            if halt.begin < cut_at:
                end = min(halt.end, cut_at)
                self._ledger.book("stall", end - halt.begin)
                self._record.stood_still("outage", halt.outages, halt.begin, end)
                self._record.waits += (Wait(halt.begin, fate) for fate in halt.fates)
        spans = [(first, min(last, cut_at)) for first, last in flow.spans if first < cut_at]
        share = self._moved(spans) / phase.communicate_seconds
        if cut_at < math.inf:
            self._now = cut_at
            self._stopped_by(self._todo.pop(0)[1], share)
        self._now = flow.end
        if flow.broken is not None:
            self._record.waits += (Wait(self._now, fate) for fate in flow.broken.fates)
            stop = self._stop(share)._replace(fates=flow.broken.fates)
            self._stopped(stop, "outage", flow.broken.outages)

    def _cut_at(self, flow: Flow) -> float:
        """When a process ends or hangs that others exchange data with; infinite: none does."""
        if not self._todo:
            return math.inf
        at, number = self._todo[0]
        is_at_once = isinstance(self._spec.happenings[number], _AT_ONCE)
        return at if is_at_once and at < flow.end else math.inf

    def _moved(self, spans: Spans) -> float:
        self._record.spans += spans
        seconds = sum(last - first for first, last in spans)
        self._ledger.work(seconds)
        return seconds

    def _stop(self, share: float) -> Stop:
        """Now, in the collective that comes when this share of the phase's data has moved."""
        steps = self._spec.steps
        before = (self._step * len(steps.phases) + self._phase) * steps.collectives
        within = min(steps.collectives - 1, int(share * steps.collectives))
        ahead = self._rng.uniform(0.0, steps.ahead_seconds)
        return Stop(self._now, self._now - ahead, before + within + 1)

    def _stopped_by(self, number: int, share: float) -> None:
        happening = self._spec.happenings[number]
        kind: CauseKind = kind_of(happening)
        self._stopped(self._stop(share)._replace(happening=happening), kind, (number,))

    def _stopped(self, stop: Stop, cause: CauseKind, happenings: tuple[int, ...]) -> None:
        """For good: the job ends, and begins again at its last checkpoint."""
        spec = self._spec
        end = Ending(spec, stop, self._rng).end()
        jitter = self._rng.uniform(-_RESTART_JITTER, _RESTART_JITTER)
        again = len(self._record.attempts) <= spec.restarts
        restart = spec.restart_seconds * (1 + jitter) if again else 0.0
        lost = self._ledger.died(
            Lost(
                detect=end.told_at - stop.at,
                propagation=end.gone_at - end.told_at,
                restart=restart,
            )
        )
        self._now = end.gone_at + restart
        self._record.ended(stop, end, cause, happenings, self._now, lost)
        raise _OverError
