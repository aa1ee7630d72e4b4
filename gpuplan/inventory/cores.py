"""The physical cores of a NUMA node, from the numbers of its CPUs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from gpuplan.plan.model import Core
from gpuplan.units import parse_ranges

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import NumaNodeSpec

Numbering = Literal["split", "adjacent"]
NUMBERINGS: tuple[Numbering, ...] = ("split", "adjacent")


def cores(node: NumaNodeSpec, threads: int) -> tuple[Core, ...]:
    """The node's cores with the CPU numbers of their threads."""
    if isinstance(node.siblings, list):
        return tuple(Core(cpus=parse_ranges(core)) for core in node.siblings)
    cpus = sorted(parse_ranges(node.cpus or ""))
    return tuple(Core(cpus=core) for core in by_core(cpus, threads, node.siblings))


def by_core(cpus: Sequence[int], threads: int, numbering: Numbering) -> tuple[tuple[int, ...], ...]:
    """Threads of a core are `adjacent` numbers, or all second threads come after all first ones."""
    count = len(cpus) // threads
    if numbering == "adjacent":
        return tuple(tuple(cpus[threads * n : threads * (n + 1)]) for n in range(count))
    return tuple(tuple(cpus[n::count]) for n in range(count))
