"""How a node's cores number their threads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

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
    for name, groups in (("split", _split), ("adjacent", _adjacent)):
        if len(threads) == 1 and list(groups(cpus, max(threads))) == list(cores):
            return name
    return [format_ranges(core) for core in cores]


def _split(cpus: Sequence[int], threads: int) -> Iterator[tuple[int, ...]]:
    count = len(cpus) // threads
    return (tuple(cpus[i::count]) for i in range(count))


def _adjacent(cpus: Sequence[int], threads: int) -> Iterator[tuple[int, ...]]:
    return (tuple(cpus[i : i + threads]) for i in range(0, len(cpus), threads))
