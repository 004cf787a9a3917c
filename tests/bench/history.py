"""History: a long one, written as the agent writes it."""

from contextlib import closing
from pathlib import Path

from flapd.model.event import Outage
from flapd.store.history import History
from tests.store.outages import outage

EVERY_SECONDS = 30
_COMMIT_OF = 5_000


def write_history(path: Path, outages: int, first_second: float = 0.0) -> None:
    """The first of them begins at this second of tests.store.outages."""
    with closing(History(path)) as history:
        for first in range(0, outages, _COMMIT_OF):
            numbers = range(first, min(outages, first + _COMMIT_OF))
            history.commit([_outage(number, first_second) for number in numbers], {})


def _outage(number: int, first_second: float) -> Outage:
    """One in a thousand is rare in some way; 16 ports, one outage every 30 s."""
    port = number % 16
    down = first_second + number * EVERY_SECONDS
    seconds = (0.02, 0.3, 1.5, 2.0, 7.0, 40.0, 300.0)[number % 7]
    rare = number % 1000
    return outage(
        f"flap-{number:016x}",
        down=down,
        up=None if rare == 1 else down + seconds,
        status={1: "open", 2: "lost"}.get(rare, "closed"),
        cause="subnet" if rare == 3 else "unknown" if rare == 4 else "link",
        layer="logical" if rare in (3, 4) else "physical",
        seen="while_away" if rare == 5 else ("observed", "unseen")[number % 2],
        kind="drop" if seconds > 240 else "flap",
        key=f"key{port}",
        port=f"mlx5_{port}/1",
        guid=f"0x{port:x}",
    )
