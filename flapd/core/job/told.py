"""What is told of a job: all that is known of it, interpreted."""

import msgspec
from msgspec.structs import replace

from flapd.core.cost.releases import Launcher
from flapd.core.cost.settings import JobSettings
from flapd.core.job.policy import Evidence, Policy, policy_in_force
from flapd.model.finding import Member, Setting
from flapd.model.given import Given, exactly
from flapd.model.job import Job, JobFound, JobKind, PortUse, Rank

MOST_SETTINGS = 256
MOST_MEMBERS = 1024
MOST_RANKS = 512

_LAUNCHERS: dict[str | None, Launcher] = {"torchrun": "torchrun", "slurm": "slurm"}


class JobKnown(msgspec.Struct):
    """What is kept of a job."""

    found: JobFound
    """At the last look."""
    since_unix_ns: int
    seen_unix_ns: int
    """When it was last known to run."""
    until_unix_ns: int | None = None
    told: Job | None = None
    ranks: list[Rank] = []
    """All there were, the latest last: a launcher may have started others in their place."""
    at_most: tuple[Rank, ...] = ()
    """Before any of them ended: at its end ranks go one after the other."""
    gpus_at_most: int | None = None
    """Of these."""
    settings: list[Setting] = []
    members: dict[int, Member] = {}
    """By the process, each in the largest communicator that it has joined."""
    hcas: list[str] = []
    log_timeouts_seconds: list[float] = []
    dump_timeouts_seconds: tuple[float, ...] = ()

    def take_found(self, found: JobFound) -> None:
        self.found = found
        self._count(found)
        pids = {rank.pid for rank in found.ranks}
        others = [rank for rank in self.ranks if rank.pid not in pids]
        self.ranks = [*others, *found.ranks][-MOST_RANKS:]

    def _count(self, found: JobFound) -> None:
        """Those that are left of ranks that were counted are no news; a new one is."""
        counted = {(rank.pid, rank.started_unix_ns) for rank in self.at_most}
        left = {(rank.pid, rank.started_unix_ns) for rank in found.ranks}
        if not left <= counted or left == counted:
            self.at_most, self.gpus_at_most = found.ranks, found.gpus

    @property
    def counted(self) -> tuple[Rank, ...]:
        """Its ranks here, also those that have ended while others had not."""
        return self.at_most or self.found.ranks

    def take_setting(self, setting: Setting) -> None:
        """What was printed last is in force."""
        same = (setting.name, setting.value)
        others = [one for one in self.settings if (one.name, one.value) != same]
        self.settings = [*others, setting][-MOST_SETTINGS:]

    def take_member(self, member: Member) -> None:
        if member.pid is None:
            return
        known = self.members.get(member.pid)
        if known is not None and known.ranks >= member.ranks:
            return
        if known is not None or len(self.members) < MOST_MEMBERS:
            self.members[member.pid] = member

    def take_timeout(self, seconds: float) -> bool:
        """Of a process group, as a message has it; False: it was known."""
        if seconds in self.log_timeouts_seconds or len(self.log_timeouts_seconds) >= MOST_SETTINGS:
            return False
        self.log_timeouts_seconds = sorted([*self.log_timeouts_seconds, seconds])
        return True

    def has_process(self, host: str | None, pid: int) -> bool:
        """A log line has the number inside the container, and names hosts without their domain."""
        return any(
            pid in (rank.pid, rank.inner_pid)
            and (host is None or rank.host is None or _short(host) == _short(rank.host))
            for rank in self.ranks
        )

    def kind(self, settings: JobSettings) -> JobKind:
        least, _, most = (self.found.environment or {}).get("PET_NNODES", "").partition(":")
        return settings.kind or ("elastic" if most and least != most else "training")


class Seen(msgspec.Struct, frozen=True):
    """What the traffic of its ports tells of a job."""

    ports: dict[str, PortUse] = {}
    stalls_since_unix_ns: int | None = None
    shortest_stall_seconds: float | None = None
    traffic_since_unix_ns: int | None = None
    unseen_unix_ns: tuple[tuple[int, int], ...] = ()


def told_of(known: JobKnown, event_id: str, node: str, settings: JobSettings, seen: Seen) -> Job:
    """As it would be told now for the first time."""
    policy = policy_in_force(_evidence(known, settings))
    world = _world_size(known, settings)
    return Job(
        id=event_id,
        revision=1,
        node=node,
        job=known.found.job,
        kind=known.kind(settings),
        world_size=world,
        local_ranks=_local_ranks(known, world),
        gpus=len(known.counted) if known.gpus_at_most is None else known.gpus_at_most,
        ports=seen.ports,
        since_unix_ns=known.since_unix_ns,
        until_unix_ns=known.until_unix_ns,
        policy=_givens(policy),
        remarks=policy.remarks,
        blind_to=known.found.blind_to,
        stalls_seen_since_unix_ns=seen.stalls_since_unix_ns,
        shortest_stall_seconds=seen.shortest_stall_seconds,
        traffic_since_unix_ns=seen.traffic_since_unix_ns,
        traffic_unseen_unix_ns=seen.unseen_unix_ns,
    )


def revised(before: Job | None, now: Job) -> Job | None:
    """The next revision; None: nothing changed."""
    if before is None:
        return now
    now = replace(now, revision=before.revision)
    return None if now == before else replace(now, revision=before.revision + 1)


def _evidence(known: JobKnown, settings: JobSettings) -> Evidence:
    found = known.found
    return Evidence(
        environment=found.environment,
        conf_files=found.conf_files,
        told=tuple(known.settings),
        log_timeouts_seconds=tuple(known.log_timeouts_seconds),
        dump_timeouts_seconds=known.dump_timeouts_seconds,
        nccl=found.nccl,
        torch=found.torch,
        # Its environment tells more: torchrun may run inside Slurm.
        launcher=None if found.environment else _LAUNCHERS.get(found.scheduler),
        configuration=settings,
    )


def _givens(policy: Policy) -> dict[str, Given[object]]:
    names = (name for name in policy.__struct_fields__ if name != "remarks")
    return {name: getattr(policy, name) for name in names}


def _world_size(known: JobKnown, settings: JobSettings) -> Given[int] | None:
    if known.found.world_size is not None:
        return exactly(known.found.world_size, "environment")
    if known.members:
        return exactly(max(member.ranks for member in known.members.values()), "log")
    if settings.world_size is not None:
        return exactly(settings.world_size, "configuration")
    return None


def _local_ranks(known: JobKnown, world: Given[int] | None) -> tuple[int, ...]:
    ranks = (_number(known, rank, world) for rank in known.counted)
    return tuple(sorted({rank for rank in ranks if rank is not None}))


def _number(known: JobKnown, rank: Rank, world: Given[int] | None) -> int | None:
    """By its environment, else by its place in the communicator that is the whole job."""
    member = known.members.get(rank.pid if rank.inner_pid is None else rank.inner_pid)
    if rank.rank is not None or member is None or world is None or member.ranks != world.value:
        return rank.rank
    return member.rank


def _short(host: str) -> str:
    return host.partition(".")[0].lower()
