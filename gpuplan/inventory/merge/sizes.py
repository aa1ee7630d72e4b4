"""Quantities as an inventory writes them: never more than there is, and equal for equal machines
whose kernels keep a few pages more or less."""

from __future__ import annotations

from gpuplan.units import GB, GIB, MIB

COARSE_FROM = 16 * GIB


def memory_text(size: float) -> str:
    """Whole GiB, below 16 GiB whole MiB; rounded down."""
    if size >= COARSE_FROM:
        return f"{int(size) // GIB} GiB"
    return exact_text(size)


def exact_text(size: float) -> str:
    """Whole MiB, rounded down; what is less than one, in bytes."""
    return f"{int(size) // MIB} MiB" if size >= MIB else f"{int(size)} B"


def drive_text(size: float) -> str:
    """Whole GB, as drives are sold, rounded down."""
    return f"{int(size) // GB} GB" if size >= GB else f"{int(size)} B"


def rate_text(rate: float) -> str:
    """5e10 → `400 Gb/s`."""
    return f"{rate * 8 / GB:g} Gb/s"
