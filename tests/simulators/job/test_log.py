"""What ranks print is what flapd's own reader of logs knows, at the times at which it happened."""

from itertools import pairwise

import pytest
from msgspec.structs import replace

from flapd.core.job.clock import Clock
from flapd.core.job.stream import LogStream
from flapd.model.fault import Fault
from flapd.model.finding import Finding, Member, Network, PlannedPause, Setting, Step
from flapd.model.times import SECOND_NS
from simulators.job.happenings import CodeHang, Outage, WatchdogStuck
from simulators.job.log import node_log
from simulators.job.record import Run
from simulators.job.spec import Pause, Software
from simulators.job.words import speaker
from tests.simulators.job.jobs import IN_FULL_FLOW, NOMINAL, RELEASES, run_of

UNIX_NS = 1_796_027_531 * SECOND_NS
CLOCK = speaker.Clock(UNIX_NS)


def read(run: Run, node: int = 0) -> tuple[list[Finding], LogStream]:
    """As it is written, each line at once."""
    stream, found = LogStream("job.log"), list[Finding]()
    for line in node_log(run, node, CLOCK):
        found += stream.feed(line.text.encode(), Clock(arrived_ns=CLOCK.unix_ns(line.at)))
    return found, stream


def faults_of(run: Run, node: int = 0) -> list[Fault]:
    return [one for one in read(run, node)[0] if isinstance(one, Fault)]


def seconds(fault: Fault) -> float:
    assert fault.time_ns is not None
    return (fault.time_ns - UNIX_NS) / SECOND_NS


def fatal(software: Software, **spec: object) -> Run:
    return run_of(
        steps=IN_FULL_FLOW,
        transport=replace(NOMINAL, ib_timeout=18),
        software=software,
        happenings=(Outage(100.0, 60.0, port=2),),
        **spec,
    )


@pytest.mark.parametrize("layer", ["InfiniBand", "Ethernet"])
@pytest.mark.parametrize("software", RELEASES, ids=lambda one: f"{one.torch}-{one.nccl}")
def test_every_release_s_chain_of_an_error_is_read(software: Software, layer: str) -> None:
    run = fatal(software, link_layer=layer)
    found, stream = read(run)
    faults = [one for one in found if isinstance(one, Fault)]

    completion = next(one for one in faults if one.kind == "transport_error")
    told = {one.at for one in run.messages if one.name == "completion" and one.rank == 2}

    assert stream.unknown_warnings == 0
    assert (completion.status, completion.host, completion.pid) == (12, "node000", 14002)
    assert seconds(completion) == pytest.approx(min(told), abs=1.0)
    assert sum(one.kind == "port_event" for one in faults) >= 8
    assert any(one.kind == "process_death" for one in faults)
    kind = "watchdog_timeout" if software.nccl.startswith("2.18") else "nccl_error"
    assert any(one.kind == kind and one.rank in {2, None} for one in faults)


@pytest.mark.parametrize("software", RELEASES, ids=lambda one: f"{one.torch}-{one.nccl}")
def test_every_release_s_timeout_says_since_when_it_waited(software: Software) -> None:
    run = run_of(software=software, happenings=(CodeHang(100.0, 3),))

    timeouts = [one for one in faults_of(run) if one.form == "watchdog_timeout"]

    assert timeouts
    stop = run.attempts[0].stop
    assert stop is not None
    for one in timeouts:
        assert one.started_ns is not None
        started = (one.started_ns - UNIX_NS) / SECOND_NS
        assert started == pytest.approx(stop.enqueued_at, abs=0.01)
        assert one.timeout_seconds == software.group_timeout_seconds
        assert one.seq == stop.seq


@pytest.mark.parametrize("torch", ["2.2.0", "2.4.0", "2.8.0"])
def test_a_stuck_watchdog_is_read(torch: str) -> None:
    software = Software(torch=torch, watchdog_seconds=1800.0)
    run = run_of(software=software, happenings=(WatchdogStuck(100.0, 3),))

    assert [one.rank for one in faults_of(run) if one.kind == "heartbeat"][:1] == [3]


def test_the_start_tells_what_runs_where_and_how_long_it_waits() -> None:
    software = Software(nccl_debug="INFO")
    run = run_of(software=software, transport=replace(NOMINAL, ib_timeout=22))

    found, _ = read(run)

    members = [one for one in found if isinstance(one, Member)]
    settings = {(one.name, one.value) for one in found if isinstance(one, Setting)}
    networks = [one for one in found if isinstance(one, Network)]
    assert [one.rank for one in members] == list(range(8))
    assert {one.ranks for one in members} == {32}
    assert ("NCCL_IB_TIMEOUT", "22") in settings
    assert networks[0].hcas[:2] == ("mlx5_0:1/IB", "mlx5_1:1/IB")


def test_without_a_level_nccl_is_silent_and_torch_repeats_its_last_words() -> None:
    run = fatal(Software(nccl_debug=""))

    forms = [one.form for one in faults_of(run)]

    assert "async_error_event" not in forms
    assert "nccl_error" in forms


def test_steps_and_pauses_are_printed_by_the_ranks_that_print_them() -> None:
    run = run_of(
        duration_seconds=400.0, checkpoint=Pause(100.0, 10.0), evaluation=Pause(150.0, 10.0)
    )

    first = [one for one in read(run, 0)[0] if isinstance(one, PlannedPause | Step)]
    last = [one for one in read(run, 3)[0] if isinstance(one, PlannedPause | Step)]

    assert {one.what for one in first if isinstance(one, PlannedPause)} == {"checkpoint"}
    assert {one.what for one in last if isinstance(one, PlannedPause)} == {"evaluation"}
    steps = [one for one in last if isinstance(one, Step)]
    assert len(steps) == run.truth.steps
    assert all(2.0 < (one.seconds or 0.0) < 6.0 for one in steps)


def test_a_process_prints_nothing_after_its_end() -> None:
    run = fatal(Software())
    (attempt,) = run.attempts
    assert attempt.end is not None

    for line in node_log(run, 0, CLOCK):
        assert line.at <= attempt.end.ends[line.rank] + 0.04


def test_lines_are_in_order_of_time() -> None:
    lines = node_log(fatal(Software(nccl_debug="INFO")), 0, CLOCK)

    assert all(first.at <= second.at for first, second in pairwise(lines))
