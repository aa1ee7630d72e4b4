"""Where a function of one number turns, found by halving."""

from __future__ import annotations

from collections.abc import Callable


def halved(
    low: float, high: float, below: Callable[[float], bool], nearly: float
) -> tuple[float, float]:
    """Two numbers from `low` to `high`, at most `nearly` apart: what is `below` up to the first, if
    any of it is, and nothing from the second on, if not all of it is."""
    while high - low > nearly:
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle) else (low, middle)
    return low, high
