"""Damping: a score of each port that rises with its downs and falls by itself.

As route flap damping does (RFC 2439 §2): each down adds a penalty, which halves in a fixed
time; a port is flapping from `suspect` on until it has fallen to `clear`. The score is
capped so that a port is clear a day after its last down at the latest, at the defaults.
"""

import msgspec

from flapd.core.fabric.settings import FlapSettings
from flapd.model.times import SECOND_NS

LONGEST_SUPPRESSION_NS = 24 * 3600 * SECOND_NS


class Damping(msgspec.Struct):
    """The score as it stood at one moment (monotonic)."""

    penalty: float = 0.0
    at_ns: int = 0
    flapping: bool = False


def penalty_at(damping: Damping, now_ns: int, half_life_ns: int) -> float:
    """The score as it stands now."""
    age_ns = max(0, now_ns - damping.at_ns)
    return float(damping.penalty * 0.5 ** (age_ns / half_life_ns))


def ceiling(settings: FlapSettings, longest_ns: int = LONGEST_SUPPRESSION_NS) -> float:
    """From here it takes `longest_ns` to fall to `clear`."""
    half_lives = min(longest_ns / settings.half_life.ns, 1000)
    return max(settings.suspect, settings.clear * 2**half_lives)


def add_downs(
    damping: Damping, downs: int, at_ns: int, settings: FlapSettings, now_ns: int
) -> None:
    """Downs at `at_ns`, known of since `now_ns`: what happened long ago weighs less."""
    half_life_ns = settings.half_life.ns
    added = Damping(downs * settings.penalty, at_ns)
    score = penalty_at(damping, now_ns, half_life_ns) + penalty_at(added, now_ns, half_life_ns)
    damping.penalty, damping.at_ns = min(score, ceiling(settings)), max(now_ns, damping.at_ns)
    damping.flapping = damping.flapping or damping.penalty >= settings.suspect


def let_time_pass(damping: Damping, now_ns: int, settings: FlapSettings) -> None:
    """A port whose score has fallen far enough is flapping no more."""
    if damping.flapping:
        score = penalty_at(damping, now_ns, settings.half_life.ns)
        damping.flapping = score > settings.clear
