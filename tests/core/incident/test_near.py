"""What is looked up quickly is what a look at everything would find."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from flapd.core.incident.background import BEFORE_NS, TOGETHER_NS, Background
from flapd.core.incident.evidence import Watched, begin_ns
from flapd.core.incident.in_order import InOrder
from flapd.core.incident.out_of_step import TOGETHER_NS as OF_ONE_HANG_NS
from flapd.core.incident.out_of_step import OutOfStep
from flapd.model.event import Outage
from flapd.model.fault import Fault, FaultKind
from flapd.model.times import SECOND_NS
from tests.core.incident.parts import edge, fault, ns, outage


@st.composite
def timeouts(draw: st.DrawFn) -> Fault:
    kinds: tuple[FaultKind, ...] = ("watchdog_timeout", "watchdog_timeout", "heartbeat")
    return fault(
        draw(st.sampled_from(kinds)),
        draw(st.integers(0, 600)),
        id=f"fault-{draw(st.integers(0, 10**6))}",
        form=draw(st.sampled_from(["timeout", "timeout", "not_joined"])),
        seq=draw(st.sampled_from([None, 1, 1, 2])),
        op=draw(st.sampled_from([None, "ALLREDUCE", "ALLREDUCE", "BROADCAST"])),
        process_group=draw(st.sampled_from([None, "0", "1"])),
    )


def of_one_hang(one: Fault, other: Fault) -> bool:
    assert one.time_ns is not None
    assert other.time_ns is not None
    near = abs(one.time_ns - other.time_ns) <= OF_ONE_HANG_NS
    return near and one.seq is not None and one.seq == other.seq


@given(st.lists(timeouts(), max_size=12, unique_by=lambda one: one.id))
def test_ranks_out_of_step_are_those_that_comparing_all_finds(faults: list[Fault]) -> None:
    found = OutOfStep(faults)
    told = [one for one in faults if one.kind == "watchdog_timeout"]
    for one in faults:
        absent = [other for other in told if other.form == "not_joined" and of_one_hang(one, other)]
        nearest = found.absent(one)
        assert nearest in absent or (nearest is None and not absent)
    for one in told:
        unlike = [
            each
            for each in told
            if of_one_hang(one, each)
            and one.process_group == each.process_group
            and None not in (one.op, each.op)
            and one.op != each.op
        ]
        other = found.unlike(one)
        assert other in unlike or (other is None and not unlike)


@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 90)), max_size=12),
    st.integers(-50, 400),
    st.integers(0, 100),
)
def test_outages_of_a_time_are_those_that_looking_at_all_finds(
    times: list[tuple[int, int]], first: int, length: int
) -> None:
    outages: list[Outage] = [
        outage(at, 1, id=f"flap-{number}", down=edge(at, width))
        for number, (at, width) in enumerate(sorted(times))
    ]
    first_ns, last_ns = ns(first), ns(first + length)
    within = [
        one for one in outages if one.down.latest_unix_ns >= first_ns and begin_ns(one) <= last_ns
    ]
    found = InOrder(outages).between(first_ns, last_ns)

    assert [one for one in found if one.down.latest_unix_ns >= first_ns] == within


def clusters(starts: list[int]) -> list[list[int]]:
    breaks = [0, *(i + 1 for i, (a, b) in enumerate(pairwise(starts)) if b - a > TOGETHER_NS)]
    return [starts[a:b] for a, b in pairwise([*breaks, len(starts)]) if a < b]


@given(
    st.lists(st.integers(0, 90), max_size=40, unique=True),
    st.integers(0, 90),
    st.integers(0, 90),
)
def test_flaps_of_the_background_are_counted_as_one_by_one(
    minutes_half: list[int], flap: int, at: int
) -> None:
    """In steps of 40 s over an hour, so that some hang together and others do not."""
    step_ns = 40 * SECOND_NS
    starts = sorted(one * step_ns for one in minutes_half)
    flap_ns, at_ns = flap * step_ns, at * step_ns
    background = Background(["a"], {"a": tuple(starts)}, {"a": Watched(0, at_ns)})

    seen = [one for one in starts if at_ns - BEFORE_NS <= one <= at_ns]
    others = [
        one
        for one in clusters(seen)
        if not one[0] - TOGETHER_NS <= flap_ns <= one[-1] + TOGETHER_NS
    ]
    healthy = Background(["a"], {}, {"a": Watched(0, at_ns)}).per_second(flap_ns, at_ns)
    rate = background.per_second(flap_ns, at_ns) - healthy
    assert round(rate * max(3600.0, at_ns / SECOND_NS)) == len(others)
