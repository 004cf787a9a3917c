"""Queue pairs in error: a connection of a job died, which nothing need have said in words.

The state is asked for seldom, so that it does not say when; and a peer that died brings it as
well as a link. It goes with the errors that do say when, and is never told as the first of them.
"""

from collections.abc import Callable, Iterator, Mapping
from hashlib import blake2b

from flapd.model.fault import Fault
from flapd.model.job import JobFound
from flapd.model.port import Port

FORM = "queue_pair_error"
_UNSURE_NS = 60_000_000_000
"""Asked again so long after a port is back, at most."""


def faults_of(
    before: Mapping[str, int],
    found: JobFound,
    port_of: Callable[[str], Port | None],
    node: str,
    now_unix_ns: int,
) -> Iterator[Fault]:
    """One a port on which there are more than `before`."""
    for key, count in sorted(found.queue_pairs_in_error.items()):
        port, more = port_of(key), count - before.get(key, 0)
        if port is not None and more > 0:
            yield _fault(port, more, count, found.job, node, now_unix_ns)


def _fault(port: Port, more: int, count: int, job: str, node: str, now_unix_ns: int) -> Fault:
    said = f"{node}|{port.key}|{FORM}|{job}|{count}|{now_unix_ns}"
    return Fault(
        id="fault-" + blake2b(said.encode(), digest_size=8).hexdigest(),
        kind="counter",
        form=FORM,
        text=f"{count} queue pairs of job {job} on {port.name} are in error",
        time_ns=now_unix_ns,
        clock_error_ns=_UNSURE_NS,
        arrived_ns=now_unix_ns,
        job=job,
        consequence=True,
        hca=port.device,
        port=port.number,
        event="queue pairs in error",
        repeats=more,
    )
