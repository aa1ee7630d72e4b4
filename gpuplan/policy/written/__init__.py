"""The files of a stack in the words of their reader: Slurm's, Compose's, Podman's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from gpuplan.plan.outside.objects import Written
from gpuplan.policy.written import assigned, compose, quadlet, slurm
from gpuplan.render.tree import File

READERS = (slurm.read, compose.read, assigned.read, quadlet.read)


def written(files: Iterable[File]) -> tuple[Written, ...]:
    """What the files of the stack make, in their order; nothing of what is no target's."""
    return tuple(w for file in files for w in _of(file))


@lru_cache(maxsize=512)  # `check` and `diff` ask for the same files
def _of(file: File) -> tuple[Written, ...]:
    return tuple(w for read in READERS for w in read(file))
