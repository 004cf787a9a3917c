"""Values: what may be typed for an option, and what would be right instead."""

import argparse
import math
from collections.abc import Callable
from typing import TypeVar

from flapd.model.duration import RIGHT_DURATION, parse_duration

_T = TypeVar("_T")

_MOST_IN_A_LIST = 16
_NUMBER = frozenset("0123456789.eE+-")


def list_of(one: Callable[[str], _T]) -> Callable[[str], list[_T]]:
    def parse(written: str) -> list[_T]:
        parts = written.split(",")
        if len(parts) > _MOST_IN_A_LIST:
            raise argparse.ArgumentTypeError(f"at most {_MOST_IN_A_LIST} values at once")
        return [one(part) for part in parts]

    return parse


def seconds(written: str) -> float:
    is_number = written.isascii() and written.replace(".", "", 1).isdigit()
    try:
        return parse_duration(float(written) if is_number else written).seconds
    except ValueError:
        raise argparse.ArgumentTypeError(f"{written!r}: {RIGHT_DURATION} would be right") from None


def period(written: str) -> float:
    """A second or more."""
    span = seconds(written)
    if span < 1:
        raise argparse.ArgumentTypeError(f"{written!r}: one second or more would be right")
    return span


def whole(low: int, high: int) -> Callable[[str], int]:
    def parse(written: str) -> int:
        if written.isascii() and written.isdigit() and low <= int(written[:12]) <= high:
            return int(written)
        raise argparse.ArgumentTypeError(
            f"{written!r}: a whole number from {low} to {high} would be right"
        )

    return parse


def number(low: float, high: float) -> Callable[[str], float]:
    def parse(written: str) -> float:
        try:
            value = float(written) if _NUMBER.issuperset(written) else math.nan
        except ValueError:
            value = math.nan
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(
                f"{written!r}: a number from {low:g} to {high:g} would be right"
            )
        return value

    return parse
