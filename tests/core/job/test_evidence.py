"""What is told of faults in the end depends on the faults, not on how they arrived."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.job.evidence import Evidence, EvidenceRecord
from flapd.core.job.view import JobTotals
from flapd.model.fault import Fault, FaultKind
from flapd.model.times import SECOND_NS

NOW_NS = 1_000_000 * SECOND_NS
KINDS: tuple[FaultKind, ...] = (
    "port_event",
    "transport_error",
    "nccl_error",
    "watchdog_timeout",
    "process_death",
)


@st.composite
def faults(draw: st.DrawFn) -> Fault:
    kind = draw(st.sampled_from(KINDS))
    at = draw(st.integers(0, 2000)) / 10
    pid = draw(st.integers(1, 3))
    return Fault(
        id=f"fault-{kind}-{at}-{pid}",
        kind=kind,
        form=kind,
        text="",
        time_ns=NOW_NS + round(at * SECOND_NS),
        clock_error_ns=0,
        pid=pid,
        host="node7",
        consequence=draw(st.booleans()),
    )


def told_in_the_end(batches: list[list[Fault]]) -> dict[str, Fault]:
    evidence = Evidence("node7", EvidenceRecord(), JobTotals())
    told: dict[str, Fault] = {}
    for batch in batches:
        for fault in batch:
            evidence.take(fault, NOW_NS)
        for fault in evidence.tell(NOW_NS, _job_of):
            before = told.get(fault.id)
            assert fault.revision == (1 if before is None else before.revision + 1)
            told[fault.id] = fault
    return told


def _job_of(fault: Fault) -> str:
    return f"job-{fault.pid == 3}"


def content(told: dict[str, Fault]) -> list[Fault]:
    """Without what says under which id and how often it was told."""
    left = [one for one in told.values() if one.merged_into is None]
    return sorted(
        (replace(one, id="", revision=0) for one in left), key=lambda one: (repr(one), one.pid)
    )


@given(st.lists(faults(), max_size=14, unique_by=lambda one: one.id), st.data())
def test_order_and_batches_do_not_matter(found: list[Fault], data: st.DataObject) -> None:
    shuffled = data.draw(st.permutations(found))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(found)), max_size=4)))
    again = data.draw(st.lists(st.sampled_from(found), max_size=3)) if found else []
    bounds = [0, *cuts, len(found)]
    batches = [shuffled[begin:end] for begin, end in pairwise(bounds)]

    assert content(told_in_the_end([*batches, again])) == content(told_in_the_end([found]))


@given(st.lists(faults(), max_size=14, unique_by=lambda one: one.id))
def test_every_message_is_in_one_fault(found: list[Fault]) -> None:
    told = told_in_the_end([[one] for one in found])

    left = [one for one in told.values() if one.merged_into is None]
    assert sum(one.repeats for one in left) == len(found)
    heads = {one.id for one in left}
    assert all(one.merged_into in heads for one in told.values() if one.merged_into)
