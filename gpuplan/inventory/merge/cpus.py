"""How a node's cores number their threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuplan.inventory.cores import NUMBERINGS, by_core
from gpuplan.units import format_ranges


def cores_of(cpus: Sequence[int], siblings: Iterable[Sequence[int]]) -> list[tuple[int, ...]]:
    """The cores among `cpus`, each with its threads, by their first one."""
    inside = set(cpus)
    groups = {tuple(sorted(inside & set(group))) for group in siblings}
    return sorted(group for group in groups if group)


def numbering(cpus: Sequence[int], cores: Sequence[tuple[int, ...]]) -> str | list[str] | None:
    """`split`, `adjacent`, or the CPUs of each core; None where `cores` are not all of `cpus`."""
    cpus = sorted(cpus)
    if sorted(cpu for core in cores for cpu in core) != cpus:
        return None
    threads = {len(core) for core in cores}
    for name in NUMBERINGS if len(threads) == 1 else ():
        if by_core(cpus, max(threads), name) == tuple(cores):
            return name
    return [format_ranges(core) for core in cores]
