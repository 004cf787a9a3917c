"""What passes between the agent and its job reader (child_link.py)."""

from typing import TypeAlias

import msgspec

from flapd.model.observation import DumpsRead, FaultRead, JobSeen, JobsPresent, Noted
from flapd.sources.follow.position import Position
from flapd.sources.settings import DumpsSettings, JobsSettings, LogsSettings


class ReaderOrders(msgspec.Struct, frozen=True, tag="orders"):
    """What the agent tells its reader first."""

    node: str
    sysfs: str
    proc: str
    state: str
    logs: LogsSettings = LogsSettings()
    dumps: DumpsSettings = DumpsSettings()
    jobs: JobsSettings = JobsSettings()
    pods: str = "/var/log/pods"


class LookAtQueuePairs(msgspec.Struct, frozen=True, tag="queue_pairs"):
    """A port is back: which queue pairs came to harm?"""


class ReaderHealth(msgspec.Struct, frozen=True, array_like=True, tag="health"):
    """How reading goes, since the reader began; told every second."""

    files: int = 0
    """Logs that are followed."""
    bytes: int = 0
    unknown_warnings: int = 0
    """Of NCCL, in forms that are not known."""
    faults_held_back: int = 0
    """That said the same as many before them."""
    dumps: int = 0
    """Read."""
    failures: dict[str, str] = {}
    """What cannot be read now, and why: files, patterns, the journal, processes."""
    behind_bytes: int = 0
    """That are in logs and not read yet."""


class JobReaderHealth(msgspec.Struct):
    """What happened to the job reader since the agent started."""

    restarts: int = 0
    reads: ReaderHealth = ReaderHealth()
    """Since it started last."""


Request: TypeAlias = ReaderOrders | LookAtQueuePairs
Read: TypeAlias = JobSeen | JobsPresent | FaultRead | Noted | DumpsRead
Told: TypeAlias = Read | Position | ReaderHealth

request_decoder: msgspec.msgpack.Decoder[Request] = msgspec.msgpack.Decoder(Request)
told_decoder: msgspec.msgpack.Decoder[list[Told]] = msgspec.msgpack.Decoder(list[Told])

POSITIONS_FILE = "logs.json"
"""In paths.state: written by the agent, read by the reader as it begins."""
