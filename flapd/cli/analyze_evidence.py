"""Evidence of logs, dumps and a list of flaps, as the correlator wants it; no agent was there."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from flapd.cli.analyze_reading import LATEST_NS, Material
from flapd.cli.answers import FlapAnswer
from flapd.cli.given import regular
from flapd.cli.text import unix_ns
from flapd.config import Config
from flapd.core.incident.evidence import Evidence, Watched
from flapd.core.job.dump import standings, timeouts_seconds
from flapd.core.job.merge import merged
from flapd.core.job.policy import Evidence as Settings
from flapd.core.job.policy import Policy, policy_in_force
from flapd.core.job.primary import judged
from flapd.model.errors import CouldNotFindOutError, FlapdError
from flapd.model.event import CAUSES, Kind, Layer, Outage, Seen, Status
from flapd.model.fault import Fault
from flapd.model.given import Given, exactly
from flapd.model.job import Job
from flapd.model.port import Port
from flapd.model.standing import Standing
from flapd.model.times import SECOND_NS, Edge

JOB = "the job of these logs"
MOST_FAULTS = 2000
"""The earliest; every one may have followed from every other, so more would take minutes."""
LARGEST_FILE_BYTES = 64 << 20

_NO_FLAPS = "links, since no list of flaps was given"
_NO_TRAFFIC = "traffic, of which logs do not tell"
_SLACK_NS = SECOND_NS
_LONGEST_SECONDS = 1e9
"""Thirty years: no outage was longer."""


class _Flaps(msgspec.Struct):
    items: list[FlapAnswer]


def flaps_in(path: Path) -> list[FlapAnswer]:
    """What `flapd flaps --json` printed; FlapdError where it is something else."""
    with regular(path).open("rb") as file:
        content = file.read(LARGEST_FILE_BYTES + 1)
    if len(content) > LARGEST_FILE_BYTES:
        raise FlapdError(f"{path} is larger than {LARGEST_FILE_BYTES >> 20} MiB")
    try:
        return msgspec.json.decode(content, type=_Flaps).items
    except (msgspec.MsgspecError, RecursionError) as error:
        raise FlapdError(
            f"{path}: what `flapd flaps --json` prints would be right: {error}"
        ) from None


def faults_of(material: Material) -> tuple[list[Fault], int]:
    """Merged and judged, in order of time, as of one job; and how many later ones there are."""
    found = merged(map(_dated, material.faults))
    kept = judged(found[:MOST_FAULTS])
    return [replace(one, job=JOB) for one in kept], len(found) - len(kept)


def _dated(fault: Fault) -> Fault:
    """A time that no log of such a job can have is none."""
    if fault.time_ns is None or 0 <= fault.time_ns < LATEST_NS:
        return fault
    return replace(fault, time_ns=None)


def standings_of(material: Material) -> list[Standing]:
    return standings(sorted(material.dumps.items()))


def evidence_of(
    material: Material,
    faults: Iterable[Fault],
    flaps: list[FlapAnswer] | None,
    gpus: int | None,
    config: Config,
) -> Evidence:
    """`flaps` None: nobody watched the links."""
    told = tuple(faults)
    try:
        outages = tuple(_outage(one) for one in flaps or ())
    except CouldNotFindOutError as error:
        raise FlapdError(f"--flaps: {error}") from None
    nodes = sorted({one.node for one in outages}) or [""]
    used = {node: _used_ports(material, node) for node in nodes}
    job = _job(material, told, gpus, config, has_flaps=flaps is not None)
    jobs = [
        replace(job, id=f"{JOB} on {node}", node=node, ports=dict.fromkeys(ports, "log"))
        for node, ports in used.items()
    ]
    flapped = {one.key: _port(one.key, one.port, "") for one in outages}
    return Evidence(
        node="",
        outages=outages,
        faults=told,
        jobs=tuple(jobs),
        standings={JOB: tuple(standings_of(material))},
        ports=flapped | {key: port for ports in used.values() for key, port in ports.items()},
        watched=_watched(outages),
        job=config.job,
        cost=config.cost,
    )


def _job(
    material: Material,
    faults: Iterable[Fault],
    gpus: int | None,
    config: Config,
    *,
    has_flaps: bool,
) -> Job:
    return Job(
        id=JOB,
        revision=1,
        node="",
        job=JOB,
        kind="training",
        world_size=_world_size(material, gpus),
        local_ranks=(),
        gpus=0,
        ports={},
        since_unix_ns=0,
        until_unix_ns=None,
        policy=_givens(_policy(material, faults, config)),
        blind_to=(_NO_TRAFFIC,) if has_flaps else (_NO_FLAPS, _NO_TRAFFIC),
    )


def _used_ports(material: Material, node: str) -> dict[str, Port]:
    """By key: those that NCCL printed, on this node where any process there printed some."""
    told = list(material.networks)
    here = [one for one in told if one.host == node] or told
    words = {word for one in here for word in one.hcas}
    ports = {}
    for word in sorted(words):
        # mlx5_0:1/IB (ncclIbInit in NCCL's src/transport/net_ib.cc)
        name, _, layer = word.replace(":", "/", 1).rpartition("/")
        key = _key(node, name)
        ports[key] = _port(key, name, _LAYERS.get(layer, ""))
    return ports


_LAYERS = {"IB": "InfiniBand", "RoCE": "Ethernet"}


def _key(node: str, name: str) -> str:
    return f"{node}:{name}"


def _port(key: str, name: str, link_layer: str) -> Port:
    device, _, number = name.rpartition("/")
    return Port(key, device, int(number) if number.isdecimal() else 1, link_layer)


def _world_size(material: Material, gpus: int | None) -> Given[int] | None:
    """As said, else as the largest communicator has it, and no rank is beyond it."""
    if gpus is not None:
        return exactly(gpus, "option")
    largest = max((one.ranks for one in material.members), default=0)
    return exactly(largest, "log") if largest else None


def _policy(material: Material, faults: Iterable[Fault], config: Config) -> Policy:
    timeouts = {one.timeout_seconds for one in faults if one.kind == "watchdog_timeout"}
    of_dumps = {one for dump in material.dumps.values() for one in timeouts_seconds(dump)}
    return policy_in_force(
        Settings(
            told=tuple(material.settings),
            log_timeouts_seconds=tuple(sorted(one for one in timeouts if one is not None)),
            dump_timeouts_seconds=tuple(sorted(of_dumps)),
            configuration=config.job,
        )
    )


def _givens(policy: Policy) -> dict[str, Given[Any]]:
    fields = {name: getattr(policy, name) for name in policy.__struct_fields__}
    return {name: value for name, value in fields.items() if isinstance(value, Given)}


_Word = TypeVar("_Word", bound=str)


def _one_of(words: Sequence[_Word], written: str | None, else_: _Word) -> _Word:
    """A newer agent may have words that are not known here."""
    return next((word for word in words if word == written), else_)


def _outage(item: FlapAnswer) -> Outage:
    """As the agent had it; of what its answer does not tell, the most careful."""
    down, up = item.down, item.up
    low, high = item.down_seconds.min, item.down_seconds.max
    return Outage(
        id=item.id,
        revision=1,
        node=item.node or "",
        key=_key(item.node or "", item.port),
        port=item.port,
        guid=item.guid,
        boot=item.boot or "",
        kind=_one_of(get_args(Kind), item.kind, "flap"),
        status=_one_of(get_args(Status), item.status, "lost"),
        cause=_one_of(CAUSES, item.cause, "unknown"),
        seen=_one_of(get_args(Seen), item.seen, "unseen"),
        layer=_one_of(get_args(Layer), item.layer, "physical"),
        down=_edge(down.earliest, down.latest),
        up=None if up is None else _edge(up.earliest, up.latest),
        count=item.count or 1,
        count_at_least=item.count_at_least,
        settled=True,
        evidence=tuple(item.evidence),
        recorded_ns=0,
        down_ns_min=_ns(low),
        down_ns_max=_ns(high),
        member=item.member,
        reason=item.reason,
        grace=item.grace,
    )


def _ns(seconds: float | None) -> int | None:
    if seconds is None or not 0 <= seconds < _LONGEST_SECONDS:
        return None
    return round(seconds * SECOND_NS)


def _edge(earliest: str, latest: str) -> Edge:
    return Edge(unix_ns(earliest), unix_ns(latest), 0)


def _watched(outages: Iterable[Outage]) -> dict[str, Watched]:
    """From the first flap of the list to the last: beyond, nobody says that it is whole."""
    begins = [one.down.earliest_unix_ns for one in outages]
    if not begins:
        return {}
    span = Watched(min(begins), max(begins) + _SLACK_NS)
    return {one.key: span for one in outages}
