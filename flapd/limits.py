"""Limits: what no setting can tell by its type alone, since it depends on another."""

from collections.abc import Iterator
from typing import NamedTuple

from flapd.core.fabric.settings import FlapSettings
from flapd.model.duration import Duration, parse_duration
from flapd.serve.settings import HttpSettings, parse_listen
from flapd.sources.settings import PathsSettings, SamplingSettings

MOST_RING_ROWS = 900_000
"""Of one port: some 90 MB of tmpfs."""
SHORTEST_DROP = parse_duration("1s")

_SOCKET_PATH_BYTES = 107
"""sizeof(sun_path) - 1 (include/uapi/linux/un.h)."""


class Beyond(NamedTuple):
    """A setting that cannot be as it is, and what would be right."""

    section: str
    key: str
    right: str


def beyond_limits(
    paths: PathsSettings,
    sampling: SamplingSettings,
    flap: FlapSettings,
    http: HttpSettings,
) -> Iterator[Beyond]:
    yield from _of_sampling(sampling)
    yield from _of_flap(flap)
    yield from _of_paths(paths)
    try:
        parse_listen(http.listen)
    except ValueError as error:
        yield Beyond("http", "listen", str(error))


def _of_sampling(sampling: SamplingSettings) -> Iterator[Beyond]:
    if sampling.slow_interval < sampling.interval:
        right = f"at least sampling.interval, which is {sampling.interval}"
        yield Beyond("sampling", "slow_interval", right)
    rows = sampling.keep.ns // max(1, sampling.interval.ns)
    if rows > MOST_RING_ROWS:
        longest = Duration(MOST_RING_ROWS * sampling.interval.ns)
        right = f"at most {longest} at sampling.interval {sampling.interval}, since it is memory"
        yield Beyond("sampling", "keep", right)
    shortest = Duration(2 * sampling.black_box.ns)
    if sampling.keep < shortest:
        right = f"at least {shortest}, twice sampling.black_box, which is taken from it"
        yield Beyond("sampling", "keep", right)


def _of_flap(flap: FlapSettings) -> Iterator[Beyond]:
    if flap.drop_after < SHORTEST_DROP:
        right = f"at least {SHORTEST_DROP}, or every flap would be a drop"
        yield Beyond("flap", "drop_after", right)
    if flap.burst_max < flap.merge_within:
        right = f"at least flap.merge_within, which is {flap.merge_within}"
        yield Beyond("flap", "burst_max", right)
    if flap.clear >= flap.suspect:
        right = f"less than flap.suspect, which is {flap.suspect:g}"
        yield Beyond("flap", "clear", right)


def _of_paths(paths: PathsSettings) -> Iterator[Beyond]:
    for key in PathsSettings.__struct_fields__:
        if not getattr(paths, key):
            yield Beyond("paths", key, "a path")
    if len(paths.socket.encode()) > _SOCKET_PATH_BYTES:
        right = f"a path of at most {_SOCKET_PATH_BYTES} bytes, as the kernel has it"
        yield Beyond("paths", "socket", right)
