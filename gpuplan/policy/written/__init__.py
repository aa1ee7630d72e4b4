"""The files of a stack in the words of their reader: Slurm's, Compose's."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.plan.outside.objects import Written
from gpuplan.policy.written import compose, slurm
from gpuplan.render.tree import File


def written(files: Iterable[File]) -> tuple[Written, ...]:
    """What the files of the stack make, in their order; nothing of what is no target's."""
    return tuple(w for file in files for read in (slurm.read, compose.read) for w in read(file))
