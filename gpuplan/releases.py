"""The numbers of an engine's release."""

from __future__ import annotations

import re


def minor(version: str) -> tuple[int, ...] | None:
    """The first two numbers of a release, `v0.27.1` or `0.27`; None of one that is no number."""
    numbers = release_numbers(version)
    return numbers and numbers[:2]


def release_numbers(version: str) -> tuple[int, ...] | None:
    """The first two or three numbers of a release, 0.5.6 of `v0.5.6.post1`; None of one that is no
    number."""
    numbers = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return tuple(int(n) for n in numbers.groups() if n) if numbers else None


def stated(version: str) -> tuple[int, ...]:
    """All numbers of a release that has nothing else, as the catalogue writes them."""
    return tuple(map(int, version.split(".")))
