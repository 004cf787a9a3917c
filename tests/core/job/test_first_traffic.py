"""When an attempt of a job began to move data, where somebody looked from its start."""

from flapd.model.job import Job, Rank
from tests.core.job.node import Node, samples, unix

BURSTS = [(50 + 2.0 * step, 51.4 + 2.0 * step) for step in range(20)]


def first_traffic(started: float, watched_from: float) -> int | None:
    """Of a job with these bursts, found when the agent had begun to read."""
    node = Node()
    ranks = (Rank(rank=8, pid=100, local_rank=0, started_unix_ns=unix(started)),)
    node.job(watched_from, ranks=ranks)
    node.take(*samples(BURSTS, 80, begin=watched_from))
    node.tick(80)
    (job,) = node.last(Job)
    return job.traffic_since_unix_ns


def test_the_first_traffic_after_the_start_is_told() -> None:
    found = first_traffic(started=10, watched_from=20)

    assert found is not None
    assert abs(found - unix(50)) <= unix(0.2) - unix(0)


def test_what_moved_before_anybody_looked_is_not_the_first() -> None:
    assert first_traffic(started=10, watched_from=60.5) is None


def test_a_pause_in_which_the_agent_came_is_no_start() -> None:
    assert first_traffic(started=-3600, watched_from=20) is None
