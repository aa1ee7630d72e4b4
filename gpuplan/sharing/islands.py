"""NVLink islands: the GPUs of a host that bridges join, from its links."""

from __future__ import annotations

from itertools import combinations, product

from gpuplan.inventory.v1 import HostSpec, LinkSpec


def islands(spec: HostSpec) -> dict[int, int]:
    """The island of each GPU, by its place in the list, that NVLink joins to another one; an island
    is called after its first GPU."""
    names: dict[int, int] = {}
    for link in spec.links:
        for one, other in pairs(link) if link.link.startswith("NV") else ():
            here, there = names.setdefault(one, one), names.setdefault(other, other)
            for gpu, island in names.items():
                if island in (here, there):
                    names[gpu] = min(here, there)
    return names


def pairs(link: LinkSpec) -> list[tuple[int, int]]:
    """Pairs of GPUs, by their places."""
    both = product(link.between, link.to) if link.to else combinations(link.between, 2)
    gpus = [(a, b) for a, b in both if a.startswith("gpu") and b.startswith("gpu")]
    return [(int(a[3:]), int(b[3:])) for a, b in gpus]
