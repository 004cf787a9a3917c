"""HistorySettings: how much of the past is kept."""

from typing import Annotated

import msgspec

from flapd.model.duration import Duration, parse_duration
from flapd.store.size import Size, parse_size


class HistorySettings(msgspec.Struct, frozen=True):
    keep: Annotated[Duration, msgspec.Meta(extra={"at_least": "1d"})] = parse_duration("365d")
    keep_black_boxes: Annotated[Duration, msgspec.Meta(extra={"at_least": "1h"})] = parse_duration(
        "90d"
    )
    max_size: Annotated[Size, msgspec.Meta(extra={"at_least": "16MiB"})] = parse_size("2GiB")
    """Of database and write-ahead log together."""
