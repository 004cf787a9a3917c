"""What logs tell becomes observations of the right job."""

from flapd.model.fault import Fault
from flapd.model.finding import DumpWritten, Finding, Setting
from flapd.model.observation import FaultRead, Noted
from flapd.model.times import SECOND_NS
from flapd.sources.follow.held_back import MOST_ALIKE
from flapd.sources.follow.log_watch import LogWatch

BEGAN_NS = 1_796_000_000 * SECOND_NS


class Watching:
    def __init__(self) -> None:
        self.told: list[FaultRead | Noted] = []
        self.dumps: list[tuple[str | None, DumpWritten]] = []
        self.watch = LogWatch(
            self.told.append,
            {"a": BEGAN_NS}.get,
            lambda job, note: self.dumps.append((job, note)),
        )

    def found(self, job: str | None, *findings: Finding) -> list[FaultRead | Noted]:
        self.told.clear()
        self.watch.found(job, findings)
        return self.told


def fault(time_ns: int | None, arrived_ns: int | None = None) -> Fault:
    return Fault(
        id="f",
        kind="watchdog_timeout",
        form="watchdog_timeout",
        text="",
        time_ns=time_ns,
        clock_error_ns=0,
        arrived_ns=arrived_ns,
    )


def test_a_fault_is_told_with_its_job() -> None:
    (told,) = Watching().found("a", fault(BEGAN_NS + 5))

    assert isinstance(told, FaultRead)
    assert told.fault.job == "a"


def test_a_fault_from_before_its_job_in_a_log_that_jobs_append_to_is_not_the_jobs() -> None:
    watching = Watching()
    hour_ns = 3600 * SECOND_NS

    assert watching.found("a", fault(BEGAN_NS - hour_ns)) == []
    assert len(watching.found("a", fault(BEGAN_NS - SECOND_NS))) == 1  # the times are not exact
    assert len(watching.found("a", fault(BEGAN_NS - hour_ns, arrived_ns=BEGAN_NS + 1))) == 1
    assert len(watching.found("a", fault(None))) == 1
    assert len(watching.found(None, fault(BEGAN_NS - hour_ns))) == 1


def test_notes_are_told_and_those_of_dumps_are_followed_up() -> None:
    watching = Watching()
    setting, dump = Setting("nccl", "2.27.5"), DumpWritten("/tmp/rank_0", 0)

    told = watching.found("a", setting, dump)

    assert [one.note for one in told if isinstance(one, Noted)] == [setting, dump]
    assert watching.dumps == [("a", dump)]


def test_of_a_stream_of_the_same_the_first_are_told_and_all_are_counted() -> None:
    watching = Watching()
    told = watching.found("a", *[fault(BEGAN_NS + 5)] * (MOST_ALIKE + 7))

    assert (len(told), watching.watch.held_back) == (MOST_ALIKE, 7)
