"""Numbers that look random and are not: each is a function of a stated seed, a stream and a
counter.

The mixing function is the finalizer of SplitMix64 (Steele, Lea and Flood 2014). Nothing is kept
between calls, so a request's lengths do not depend on the order in which requests are served.
"""

from __future__ import annotations

import math

_MASK = (1 << 64) - 1
_GOLDEN = 0x9E3779B97F4A7C15  # 2^64 over the golden ratio
_STREAM = 0xD1B54A32D192ED03


def _mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _MASK
    return value ^ (value >> 31)


def uniform(seed: int, stream: int, counter: int) -> float:
    """Between 0 and 1, never either."""
    key = _mixed((seed * _GOLDEN + stream * _STREAM) & _MASK)
    return ((_mixed((key + (counter + 1) * _GOLDEN) & _MASK) >> 11) + 0.5) * 2.0**-53


def exponential(seed: int, stream: int, counter: int) -> float:
    """Of mean 1."""
    return -math.log(uniform(seed, stream, counter))


def normal(seed: int, stream: int, counter: int) -> float:
    """Of mean 0 and deviation 1 (Box and Muller 1958)."""
    radius = math.sqrt(2 * exponential(seed, stream, 2 * counter))
    return radius * math.cos(2 * math.pi * uniform(seed, stream, 2 * counter + 1))
