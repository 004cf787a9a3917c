"""Overlap: the chance that a flap falls where nobody needs the link."""


def hidden_chance(gap_seconds: float, period_seconds: float, down_seconds: float) -> float:
    """It begins and ends within the idle gap that each period of the traffic has."""
    return max(0.0, gap_seconds - down_seconds) / period_seconds
