"""Record: what happened in a run, for whoever shows it to a node or checks what was found."""

from typing import NamedTuple

from simulators.job.ending import End, Message, Stop
from simulators.job.happenings import Outage
from simulators.job.queue_pair import Fate
from simulators.job.spec import JobSpec
from simulators.job.truth import CauseKind, JobTruth, Lost, Symptom

Spans = list[tuple[float, float]]


class Attempt(NamedTuple):
    """From the start of its processes to their end."""

    begin: float
    first_step: float
    stop: Stop | None = None
    end: End | None = None
    """None: it runs at the end of the simulation."""


class Step(NamedTuple):
    number: int
    begin: float
    end: float


class PauseTaken(NamedTuple):
    what: CauseKind
    begin: float
    end: float
    step: int


class Wait(NamedTuple):
    """A queue pair sent at `begin` into a path that was missing."""

    begin: float
    fate: Fate


class Run(NamedTuple):
    """Times are seconds from the origin."""

    spec: JobSpec
    truth: JobTruth
    attempts: tuple[Attempt, ...]
    steps: tuple[Step, ...]
    """Those of attempts that ended are among them, also where they were lost."""
    pauses: tuple[PauseTaken, ...]
    spans: tuple[tuple[float, float], ...]
    """When data moved on the ports of the job, in order."""

    waits: tuple[Wait, ...]

    @property
    def messages(self) -> list[Message]:
        return [one for attempt in self.attempts if attempt.end for one in attempt.end.messages]


class Record:
    """Collects a run while it goes."""

    def __init__(self, spec: JobSpec) -> None:
        self._spec = spec
        self.symptoms: list[Symptom] = []
        self.attempts: list[Attempt] = []
        self.steps: list[Step] = []
        self.pauses: list[PauseTaken] = []
        self.spans: Spans = []
        self.waits: list[Wait] = []

    def stood_still(
        self, cause: CauseKind, happenings: tuple[int, ...], begin: float, end: float
    ) -> None:
        """All waited, and went on."""
        lost = Lost(stall=end - begin)
        self.symptoms.append(
            Symptom(
                kind="stall",
                cause=cause,
                happenings=happenings,
                begin=begin,
                end=end,
                told_at=None,
                lost=lost,
                gpu_seconds=self._spec.world_size * lost.seconds,
            )
        )

    def ended(
        self,
        stop: Stop,
        end: End,
        cause: CauseKind,
        happenings: tuple[int, ...],
        again_at: float,
        lost: Lost,
    ) -> None:
        """The attempt is over."""
        self.attempts[-1] = self.attempts[-1]._replace(stop=stop, end=end)
        self.symptoms.append(
            Symptom(
                kind=end.told,
                cause=cause,
                happenings=happenings,
                begin=stop.at,
                end=again_at,
                told_at=None if end.told == "nothing" else end.told_at,
                lost=lost,
                gpu_seconds=self._spec.world_size * lost.seconds,
            )
        )

    def unfelt(self) -> tuple[int, ...]:
        """Outages that no rank noticed."""
        felt = {number for symptom in self.symptoms for number in symptom.happenings}
        return tuple(
            number
            for number, one in enumerate(self._spec.happenings)
            if isinstance(one, Outage) and number not in felt
        )
