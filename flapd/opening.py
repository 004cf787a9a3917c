"""Opening: what an agent takes hold of before it begins; FlapdError where that cannot be had."""

from pathlib import Path

import structlog

from flapd.core.orphans import GoesOn
from flapd.model.errors import FlapdError
from flapd.sources.files import read_text
from flapd.sources.settings import PathsSettings
from flapd.store.files import is_volatile
from flapd.store.flap_query import FlapQuery
from flapd.store.history import History, open_history
from flapd.store.history_reader import HistoryReader
from flapd.store.job_queries import IncidentQuery, JobQuery, StallQuery
from flapd.store.lock import DirectoryLock
from flapd.store.span import OPEN_END_UNIX_NS

_MOST_GOING_ON = 1000
_log = structlog.get_logger("flapd.node")


def boot_id(proc: Path) -> str:
    """Without it a reboot could not be told from a restart."""
    path = proc / "sys/kernel/random/boot_id"
    boot = read_text(path)
    if not boot:
        raise FlapdError(f"paths.proc: {path} cannot be read, and without it nothing can be dated")
    return boot


def locks(paths: PathsSettings) -> list[DirectoryLock]:
    return [
        DirectoryLock(Path(paths.state), "paths.state"),
        DirectoryLock(Path(paths.ring), "paths.ring"),
    ]


def opened_history(path: Path, black_box_ns: int | None) -> History:
    """What is lost with a history that was damaged, or will be lost, is told."""
    if is_volatile(path.parent):
        _log.warning("history_will_not_last", path=str(path.parent))
    history, set_aside = open_history(path, black_box_ns)
    if set_aside is not None:
        _log.error("history_was_corrupt", set_aside=str(set_aside))
    return history


def going_on(history: HistoryReader) -> list[GoesOn]:
    """What it holds as not over yet; of jobs and stalls that is what reaches to the end of time."""
    return [
        *history.flaps(FlapQuery(status="open", limit=_MOST_GOING_ON)).items,
        *history.jobs(JobQuery(since_unix_ns=OPEN_END_UNIX_NS, limit=_MOST_GOING_ON)).items,
        *history.stalls(StallQuery(since_unix_ns=OPEN_END_UNIX_NS, limit=_MOST_GOING_ON)).items,
        *history.incidents(IncidentQuery(status="open", limit=_MOST_GOING_ON)).items,
    ]
