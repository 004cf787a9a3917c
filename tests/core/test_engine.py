import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from flapd.core.cost.settings import JobSettings
from flapd.core.engine import CheckpointError, Engine
from flapd.model.event import Outage, PortChange
from flapd.model.fault import Fault, FaultKind
from flapd.model.finding import Member, Network, Note, PlannedPause, Setting
from flapd.model.job import Job, JobFound, PortUse, Rank
from flapd.model.observation import (
    READ_FIRST,
    READ_RATE,
    READ_SLOW,
    READ_STATE,
    READ_WITNESS,
    ClockPair,
    DumpsRead,
    Expectations,
    FaultRead,
    JobSeen,
    JobsPresent,
    Maintenance,
    Noted,
    Observation,
    PortSeen,
    PortsPresent,
    ReaderStuck,
    Repaired,
    Sample,
    Tick,
)
from flapd.model.port import Port
from tests.core.histories import (
    MS,
    SETTINGS,
    assert_a_restart_changes_no_event,
    assert_revisions_rise_and_end_with_the_end,
    run,
)

WITNESS = "counters/link_downed"
SENT = "counters/port_xmit_data"
EXHAUSTED = "hw_counters/req_transport_retries_exceeded"
PORTS = [
    Port(f"guid-{number}/1", f"mlx5_{number}", 1, "InfiniBand", driver="mlx5", witnesses=(WITNESS,))
    for number in range(2)
]
JOB = JobFound(
    job="1",
    scheduler=None,
    ranks=(),
    world_size=None,
    gpus=None,
    ports={},
    queue_pairs_in_error={},
    environment=None,
    conf_files=(),
)
KINDS = ("tick", "gone", "seen", "clock", "stuck", "expect", "maintain", "repaired")
OF_JOBS = ("job", "present", "fault", "note", "dumps")
FAULT_KINDS_OFTEN: tuple[FaultKind, ...] = (
    "port_event",
    "transport_error",
    "nccl_error",
    "watchdog_timeout",
    "process_death",
)


@st.composite
def histories(draw: st.DrawFn) -> list[Observation]:
    """Anything a sampler might tell, in order of time."""
    told: list[Observation] = [ClockPair(0, 1_000_000 * MS, "boot1")]
    told += [PortSeen(port, 0) for port in PORTS]
    now_ms, boots = 0, 1
    for _ in range(draw(st.integers(0, 40))):
        now_ms += draw(st.integers(1, 300))
        port = draw(st.sampled_from(PORTS))
        kind = draw(st.sampled_from(["sample"] * 9 + [*KINDS] + [*OF_JOBS] * 2))
        late_ms = draw(st.sampled_from([0, 0, 0, 0, 150]))
        now_ns = max(0, now_ms - late_ms) * MS
        if kind in OF_JOBS:
            told.append(_of_job(draw, kind, now_ns))
        elif kind == "clock":
            boots += draw(st.sampled_from([0, 0, 0, 1]))
            unix_ns = now_ns + draw(st.integers(0, 10**18))
            told.append(ClockPair(now_ns, unix_ns, f"boot{boots}"))
        else:
            told.append(_observation(draw, kind, port, now_ns))
    return told


def _of_job(draw: st.DrawFn, kind: str, now_ns: int) -> Observation:
    """Anything a job reader might tell."""
    job = draw(st.sampled_from(["1", "1", "2"]))
    if kind == "job":
        return JobSeen(_job(draw, job), now_ns)
    if kind == "present":
        return JobsPresent(draw(st.sampled_from([("1",), ("1", "2"), ()])), (), now_ns)
    if kind == "fault":
        return FaultRead(_fault(draw, now_ns), now_ns)
    named = draw(st.sampled_from([None, job]))
    if kind == "dumps":
        return DumpsRead(named, (), (float(draw(st.integers(1, 3))),), now_ns)
    notes: list[Note] = [
        Setting("NCCL_IB_TIMEOUT", draw(st.sampled_from(["18", "22"])), None, 7),
        Network(None, 8, ("mlx5_1:1/IB",)),
        Member(None, 7, 3, 64, None, None, None, None),
        PlannedPause("checkpoint", None, 0),
    ]
    return Noted(named, draw(st.sampled_from(notes)), now_ns)


def _job(draw: st.DrawFn, job: str) -> JobFound:
    ports: list[dict[str, PortUse]] = [{}, {}, {PORTS[0].key: "queue_pair"}]
    pid = 7 if job == "1" else 8
    started_ns = draw(st.sampled_from([0, 10**15]))
    return replace(
        JOB,
        job=job,
        ranks=(Rank(rank=None, pid=pid, started_unix_ns=started_ns),),
        world_size=draw(st.sampled_from([None, 64])),
        ports=draw(st.sampled_from(ports)),
    )


def _fault(draw: st.DrawFn, now_ns: int) -> Fault:
    pid = draw(st.sampled_from([None, 7, 8, 9]))
    kind = draw(st.sampled_from(FAULT_KINDS_OFTEN))
    at_ns = max(0, now_ns - draw(st.sampled_from([0, 300, 3000])) * MS) + 10**15
    return Fault(
        id=f"fault-{kind}-{pid}-{at_ns}",
        kind=kind,
        form=kind,
        text="",
        time_ns=draw(st.sampled_from([None, at_ns, at_ns])),
        clock_error_ns=0,
        job=draw(st.sampled_from([None, None, "2"])),
        pid=pid,
        timeout_seconds=600.0 if kind == "watchdog_timeout" else None,
        hca=draw(st.sampled_from([None, "mlx5_0"])) if kind == "port_event" else None,
    )


def _observation(  # noqa: PLR0911 - one kind after the other
    draw: st.DrawFn, kind: str, port: Port, now_ns: int
) -> Observation:
    if kind == "tick":
        return Tick(now_ns)
    if kind == "gone":
        return PortsPresent(tuple(other.key for other in PORTS if other != port), (), now_ns)
    if kind == "seen":
        return PortSeen(port, now_ns)
    if kind == "stuck":
        return ReaderStuck(port.device, draw(st.sampled_from([None, now_ns])), now_ns)
    if kind == "expect":
        return Expectations(None, draw(st.sampled_from([None, 400_000])))
    if kind == "maintain":
        until_ns = now_ns + draw(st.sampled_from([0, 300 * MS]))
        return Maintenance(draw(st.sampled_from([None, port.key])), until_ns, "work", now_ns)
    if kind == "repaired":
        return Repaired(port.key, "new cable", now_ns)
    values = draw(
        st.fixed_dictionaries(
            {},
            optional={
                WITNESS: st.integers(0, 255),
                "state": st.integers(0, 6),
                "phys_state": st.integers(0, 8),
                "rate_mbps": st.sampled_from([200_000, 400_000]),
                SENT: st.integers(0, 10**12),
                EXHAUSTED: st.integers(0, 3),
            },
        )
    )
    reads = draw(
        st.sampled_from(
            [
                READ_WITNESS,
                READ_STATE,
                READ_WITNESS | READ_STATE,
                READ_WITNESS | READ_STATE | READ_RATE,
                READ_FIRST,
                READ_SLOW | READ_STATE,
                0,
            ]
        )
    )
    errors = draw(
        st.sampled_from([{}, {}, {WITNESS: "EIO"}, {"state": "EINVAL"}, {"state": "ENODEV"}])
    )
    return Sample(
        port.key,
        now_ns,
        now_ns + 2 * MS,
        reads,
        {name: value for name, value in values.items() if name not in errors},
        errors,
    )


@given(histories(), st.data())
def test_a_restart_at_any_moment_changes_no_event(
    observations: list[Observation], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(observations)), label="restart before")

    assert_a_restart_changes_no_event(observations, cut)


@given(histories())
def test_revisions_of_an_outage_rise_one_by_one_and_end_with_its_end(
    observations: list[Observation],
) -> None:
    assert_revisions_rise_and_end_with_the_end(observations)


@given(histories())
def test_totals_agree_with_the_events(observations: list[Observation]) -> None:
    engine = Engine("node7", SETTINGS)
    told = run(engine, observations)
    # Totals of a port go with it.
    assume(not any(isinstance(one, PortChange) and one.change == "forgotten" for one in told))
    last = {event.id: event for event in told}

    snapshot = engine.snapshot()
    outages = [event for event in last.values() if isinstance(event, Outage)]
    records = [engine.port(view.port.key) for view in snapshot.ports]
    going_on = {
        record.book.episode.outage
        for record in records
        if record is not None and record.book.episode is not None
    }
    over = [
        outage
        for outage in outages
        if outage.status == "closed"
        and outage.cause in {"link", "subnet", "unknown"}
        and outage.id not in going_on
    ]
    totals = [view.totals for view in snapshot.ports]
    assert sum(total.flaps + total.drops for total in totals) == len(over)
    assert sum(snapshot.down_histogram.counts) == len(over)
    assert sum(total.down_ns for total in totals) == snapshot.down_histogram.sum_ns


@pytest.mark.parametrize(
    "damage",
    [
        {"jobs": b"garbage"},
        {"fabric": b"garbage"},
        {"version": b"0"},
        {"fabric": b""},
        {"version": b""},
    ],
)
def test_a_checkpoint_of_another_version_or_damaged_is_told(damage: dict[str, bytes]) -> None:
    checkpoint = {**Engine("node7", SETTINGS).checkpoint(), **damage}

    with pytest.raises(CheckpointError):
        Engine("node7", SETTINGS, checkpoint)


def test_a_checkpoint_of_before_there_were_jobs_goes_on_without_them() -> None:
    engine = Engine("node7", SETTINGS)
    run(engine, [ClockPair(0, 0, "boot1"), PortSeen(PORTS[0], 0)])
    checkpoint = engine.checkpoint()
    for name in ("jobs", "job_settings", "cost_settings"):
        del checkpoint[name]

    for anew in (Engine("node7", SETTINGS, checkpoint), Engine.of_recording("node7", checkpoint)):
        assert [view.port for view in anew.snapshot().ports] == PORTS[:1]
        assert anew.snapshot().jobs.running == ()


def test_a_recording_goes_on_with_the_settings_of_jobs_that_were_in_force() -> None:
    first = Engine("node7", SETTINGS, job=JobSettings(ib_timeout=19))
    second = Engine.of_recording("node7", first.checkpoint())
    told = [run(engine, [ClockPair(0, 0, "boot1"), JobSeen(JOB, 10)]) for engine in (first, second)]

    assert told[0] == told[1]
    (job,) = told[0]
    assert isinstance(job, Job)
    assert job.policy["ib_timeout"].value == 19


def test_what_was_counted_of_jobs_outlives_a_checkpoint_that_cannot_be_used() -> None:
    engine = Engine("node7", SETTINGS)
    fault = Fault(id="fault-1", kind="heartbeat", form="", text="", time_ns=None, clock_error_ns=0)
    run(engine, [FaultRead(fault, 0), Tick(1), Tick(60_000 * MS)])
    checkpoint = {**engine.checkpoint(), "version": b"0"}

    anew = Engine.with_totals_of("node7", SETTINGS, checkpoint, 3_000 * MS)

    assert anew.snapshot().jobs.totals.faults["heartbeat"] == 1


def test_of_a_checkpoint_that_cannot_be_used_no_total_falls() -> None:
    engine = Engine("node7", SETTINGS)
    run(engine, [ClockPair(0, 0, "boot1"), PortSeen(PORTS[0], 0)])
    reads = READ_WITNESS | READ_STATE | READ_FIRST
    for at, downs, state in ((1, 0, 4), (2_000, 1, 1)):
        values = {WITNESS: downs, "state": state, "phys_state": 5 if state == 4 else 2}
        events = engine.step(Sample(PORTS[0].key, at * MS, at * MS + 1, reads, values))
    engine.step(Sample(PORTS[0].key, 4_000 * MS, 4_001 * MS, reads, {WITNESS: 1, "state": 1}))
    checkpoint = {**engine.checkpoint(), "version": b"0"}

    anew = Engine.with_totals_of("node7", SETTINGS, checkpoint, 3_000 * MS)

    (before,), (after,) = engine.snapshot().ports, anew.snapshot().ports
    assert (after.totals, after.ever_up) == (before.totals, True)
    assert after.totals.downs["link"] == 1
    (outage,) = [event for event in events if isinstance(event, Outage)]
    (lost,) = anew.orphans([outage])
    assert isinstance(lost, Outage)
    assert (lost.status, lost.revision) == ("lost", outage.revision + 1)
    assert engine.orphans([outage]) == []


def test_a_port_that_nobody_reads_any_more_is_not_shown_as_up() -> None:
    engine = Engine("node7", SETTINGS, stale_after_ns=3_000 * MS)
    run(engine, [ClockPair(0, 0, "boot1"), PortSeen(PORTS[0], 0)])
    reads = READ_WITNESS | READ_STATE | READ_FIRST
    engine.step(Sample(PORTS[0].key, 1, 2, reads, {WITNESS: 0, "state": 4, "phys_state": 5}))

    engine.step(Tick(3_000 * MS))
    assert engine.snapshot().ports[0].up is True
    engine.step(Tick(3_001 * MS))

    view = engine.snapshot().ports[0]
    assert (view.up, view.readable) == (None, False)


def test_ports_that_are_gone_are_told_and_those_of_a_blind_device_are_not() -> None:
    engine = Engine("node7", SETTINGS)
    run(engine, [ClockPair(0, 0, "boot1"), *(PortSeen(port, 0) for port in PORTS)])

    engine.step(PortsPresent((), ("mlx5_1",), 10))

    assert [view.present for view in engine.snapshot().ports] == [False, True]
    assert engine.snapshot().is_scouted


def test_a_node_that_lost_its_history_tells_of_its_ports_above_what_it_told_before() -> None:
    def changes(at_seconds: int) -> list[PortChange]:
        clock = ClockPair(0, (1_790_000_000 + at_seconds) * 1000 * MS, "boot1")
        seen = [PortsPresent(keys, (), MS * at) for at, keys in enumerate([(PORTS[0].key,), ()])]
        told = run(Engine("node7", SETTINGS), [clock, PortSeen(PORTS[0], 0), *seen])
        return [one for one in told if isinstance(one, PortChange)]

    before, after = changes(0), changes(3600)

    assert [one.change for one in before] == ["found", "gone"]
    assert max(one.revision for one in before) < min(one.revision for one in after)
    assert {one.id for one in before} == {one.id for one in after}


def test_a_stuck_reader_makes_its_ports_unreadable_and_no_others() -> None:
    engine = Engine("node7", SETTINGS)
    run(engine, [ClockPair(0, 0, "boot1"), *(PortSeen(port, 0) for port in PORTS)])
    reads = READ_WITNESS | READ_STATE | READ_FIRST
    for port in PORTS:
        engine.step(Sample(port.key, 1, 2, reads, {WITNESS: 0, "state": 4, "phys_state": 5}))

    engine.step(ReaderStuck("mlx5_0", 3, 900 * MS))

    stuck, other = engine.snapshot().ports
    assert (stuck.readable, stuck.up) == (False, None)
    assert (other.readable, other.up) == (True, True)
    assert engine.snapshot().stuck_readers == {"mlx5_0": 3}
