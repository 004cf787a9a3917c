"""Story: what befalls the demo's job of 1,024 GPUs within a minute.

All timeouts are short, so that nobody has to wait for the end; by the defaults of the same
releases a link may be gone for 30 s and longer before the transport gives up.
"""

from simulators.cluster.spec import Flap, FleetSpec, PlacedJob
from simulators.job.happenings import Outage
from simulators.job.job import simulate
from simulators.job.record import Run
from simulators.job.spec import JobSpec, Phase, Software, Steps, Transport

NODE = 0
NODES = 128
NEIGHBOURS = (1, NODES - 1)
"""In the ring: they wait for what the node's ports do not answer."""
FLAPS = (
    Outage(at_seconds=38.0, down_seconds=1.2, node=NODE, port=2),
    Outage(at_seconds=46.0, down_seconds=1.6, node=NODE, port=5),
    Outage(at_seconds=56.0, down_seconds=9.0, node=NODE, port=5),
)
"""Two that the transport outlasts, and one that no timer of it does.

The first comes when the rhythm of the job's traffic is known: after fifty steps.
"""
WATCHDOG_SECONDS = 20.0
_SEED = 6
"""With it the flaps hit a step while it moves data, both neighbours give up before the node does
whose link it is, and the end is over within seconds."""


def story(job: str) -> Run:
    return simulate(_job(job, FLAPS))


def fleet_story(job: str) -> FleetSpec:
    """The same, with all nodes of the job."""
    flaps = tuple(
        Flap(
            at_seconds=one.at_seconds,
            down_seconds=one.down_seconds,
            node=one.node,
            port=one.port,
        )
        for one in FLAPS
    )
    return FleetSpec(nodes=NODES, jobs=(PlacedJob(_job(job)),), happenings=flaps)


def _job(job: str, happenings: tuple[Outage, ...] = ()) -> JobSpec:
    return JobSpec(
        seed=_SEED,
        job=job,
        nodes=NODES,
        ranks_per_node=8,
        restarts=0,
        start_up_seconds=4.0,
        duration_seconds=120.0,
        steps=Steps(phases=(Phase(0.5, 0.15),), collectives=4, jitter=0.02, ahead_seconds=0.2),
        transport=Transport(ib_timeout=16),
        software=Software(
            torch="2.7.1", nccl="2.26.2", watchdog_seconds=WATCHDOG_SECONDS, nccl_debug="INFO"
        ),
        happenings=happenings,
    )


def gone_seconds(run: Run) -> float:
    """When the last process of the node is gone."""
    end = run.attempts[-1].end
    assert end is not None
    return max(at for rank, at in end.ends.items() if run.spec.node_of(rank) == NODE)
