"""What a hub sees of a job's steps: the flaps and stalls of all its nodes, each moment once."""

from collections.abc import Iterable, Sequence
from itertools import islice

from msgspec.structs import replace

from flapd.core.cost.step_fabric import Fabric, Tellers
from flapd.core.fleet import NodeView
from flapd.model.job import Job
from flapd.model.times import SECOND_NS
from flapd.serve.budget_api import InputsOf, See
from flapd.serve.budget_fabric import About, Period
from flapd.serve.errors import ApiError
from flapd.serve.hub.source import HubSource
from flapd.serve.hub.told import is_silent
from flapd.serve.parameter import bad

_MOST_NAMES = 10


def seen_by_hub(hub: HubSource) -> See:
    """Of one job, on all nodes that tell of it; ApiError where that is none."""

    def see(about: About, inputs_of_job: InputsOf) -> Fabric:
        views = {view.node: view for view in hub.fleet.nodes}
        job = about.job or _only_job(views.values())
        period = Period(hub.history, about._replace(job=job), lambda node: _ahead_ns(views, node))
        jobs = [_as_last_heard(one, views.get(one.node)) for one in period.jobs()]
        if not jobs:
            raise ApiError("not_found", f"no node tells of job {job} in that time", "job")
        fabric = period.fabric(inputs_of_job(jobs), jobs)
        return replace(fabric, tellers=_tellers(job, jobs, views))

    return see


def _only_job(views: Iterable[NodeView]) -> str:
    """That runs; ApiError where it is not the only one."""
    heard = (view.heartbeat for view in views if view.heartbeat and not is_silent(view))
    running = sorted({job for beat in heard for job in beat.jobs})
    if len(running) == 1:
        return running[0]
    named = ", ".join(islice(running, _MOST_NAMES)) or "none"
    more = f" and {len(running) - _MOST_NAMES} more" if len(running) > _MOST_NAMES else ""
    raise bad("job", f"the id of a job is needed at a hub; running now: {named}{more}")


def _ahead_ns(views: dict[str, NodeView], node: str) -> int:
    """As its clock is now; 0 where it may well be right, or nothing is known of it."""
    clock = views[node].clock if node in views else None
    if clock is None or clock.low <= 0 <= clock.high:
        return 0
    return round(clock.likely * SECOND_NS)


def _as_last_heard(job: Job, view: NodeView | None) -> Job:
    """Of a silent node it is not known that the job still runs there."""
    if job.until_unix_ns is not None or view is None or not is_silent(view):
        return job
    return replace(job, until_unix_ns=view.seen_unix_ns)


def _tellers(job: str, jobs: Sequence[Job], views: dict[str, NodeView]) -> Tellers:
    gpus: dict[str, int] = {}
    for one in jobs:  # a job that began anew is told anew
        gpus[one.node] = max(one.gpus, gpus.get(one.node, 0))
    silent = [node for node in gpus if node not in views or is_silent(views[node])]
    return Tellers(job, len(gpus), sum(gpus.values()), tuple(sorted(silent)))
