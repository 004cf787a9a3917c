"""Given: one input of the model, how sure it is, and who says so."""

from typing import Generic, Literal, TypeVar

import msgspec

Source = Literal[
    "option",
    "configuration",
    "environment",
    "conf_file",
    "log",
    "dump",
    "queue_pair",
    "scheduler",
    "measured",
    "calibrated",
    "version",
    "preset",
    "default",
]

_ASSUMED: frozenset[Source] = frozenset({"preset", "default"})

_T = TypeVar("_T")


class Given(msgspec.Struct, Generic[_T], frozen=True):
    """A value that lies in [low, high]; `value` is the one to reckon with."""

    value: _T
    low: _T
    high: _T
    source: Source

    @property
    def is_assumed(self) -> bool:
        """Nobody said so of this job: it is what jobs usually have."""
        return self.source in _ASSUMED


def exactly(value: _T, source: Source) -> Given[_T]:
    return Given(value, value, value, source)


def default(value: _T, low: _T, high: _T) -> Given[_T]:
    return Given(value, low, high, "default")
