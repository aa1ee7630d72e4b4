"""All architectures, by the name that a config.json states."""

from __future__ import annotations

from functools import cache

from gpuplan.models.families.architectures import Architecture
from gpuplan.models.families.dense import DENSE


def architecture(name: str) -> Architecture | None:
    """None for a name that is not known."""
    return DENSE.get(name) or architectures().get(name)


@cache
def architectures() -> dict[str, Architecture]:
    """All of them, by name; those that are not dense are imported where one is asked for."""
    from gpuplan.models.families.encoders import ENCODERS
    from gpuplan.models.families.mixtures import MIXTURES

    return dict(sorted((DENSE | ENCODERS | MIXTURES).items()))
