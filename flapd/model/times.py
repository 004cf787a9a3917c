"""Times: monotonic for arithmetic, wall clock for people.

All monotonic times are CLOCK_MONOTONIC in nanoseconds, comparable between the
processes of one boot. Wall time is unix time in nanoseconds.
"""

from datetime import datetime, timedelta, timezone

import msgspec

SECOND_NS = 1_000_000_000
MILLISECOND_NS = 1_000_000

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Edge(msgspec.Struct, frozen=True, array_like=True):
    """A port went down or came up, at a time known to lie in [earliest, latest].

    Both ends are read stamps of the agent (monotonic). `wall_offset_ns` turns them
    into unix time as the clock stood when the edge was recorded.
    """

    earliest_ns: int
    latest_ns: int
    wall_offset_ns: int

    @property
    def earliest_unix_ns(self) -> int:
        return self.earliest_ns + self.wall_offset_ns

    @property
    def latest_unix_ns(self) -> int:
        return self.latest_ns + self.wall_offset_ns


def rfc3339(unix_ns: int) -> str:
    """RFC 3339 in UTC with microseconds, rounded down."""
    moment = _EPOCH + timedelta(microseconds=unix_ns // 1000)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
