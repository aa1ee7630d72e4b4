"""GPUs that some tools know by number only and others by address only.

`nvidia-smi` numbers GPUs by their places on the bus, so where both are equally many, the order
joins them. Where they are not, nothing is joined.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from gpuplan.inventory.merge.entities import Entity, addresses, identities
from gpuplan.inventory.merge.messages import Gap


def index_of(gpu: Entity) -> int | None:
    return next((int(str(v)) for name, v in identities(gpu) if name == "index"), None)


def address_of(gpu: Entity) -> str | None:
    return min(map(str, addresses(gpu)), default=None)


def numbered(gpus: Sequence[Entity], host: str, gaps: list[Gap]) -> list[Entity]:
    """`gpus` in the order of their addresses, else of their numbers."""
    by_number = [g for g in gpus if address_of(g) is None and index_of(g) is not None]
    by_address = [g for g in gpus if address_of(g) is not None and index_of(g) is None]
    placed = [g for g in gpus if g not in by_number]
    by_number.sort(key=lambda g: index_of(g) or 0)
    by_address = [g for g in sorted(by_address, key=_bus_order) if _nvidia(g)]
    if by_number and placed:
        if len(by_number) == len(by_address) and _consistent(placed, by_address, by_number):
            for gpu, same in zip(by_address, by_number, strict=True):
                gpu.keys += same.keys
                for attribute, said in same.said.items():
                    gpu.said.setdefault(attribute, []).extend(said)
        else:
            gaps.append(_unmatched(len(by_number), len(placed), host, by_number[0]))
        return sorted(placed, key=_bus_order)
    return sorted(gpus, key=_bus_order)


def _bus_order(gpu: Entity) -> tuple[str, int, str]:
    index = index_of(gpu)
    return address_of(gpu) or "~", 10**6 if index is None else index, gpu.keys[0]


def _nvidia(gpu: Entity) -> bool:
    identifiers = gpu.values("pci_id")
    return not identifiers or any(str(i).startswith("10de:") for i in identifiers)


def _consistent(
    placed: Sequence[Entity], by_address: Sequence[Entity], by_number: Sequence[Entity]
) -> bool:
    """Whether numbers go up with addresses when the two are joined in order."""
    pairs = [(address_of(g), index_of(n)) for g, n in zip(by_address, by_number, strict=True)]
    pairs += [(address_of(g), index_of(g)) for g in placed if g not in by_address and _nvidia(g)]
    numbers = [n for _, n in sorted(pairs, key=lambda p: p[0] or "") if n is not None]
    return all(a < b for a, b in itertools.pairwise(numbers))


def _unmatched(numbers: int, addresses_: int, host: str, gpu: Entity) -> Gap:
    return Gap(
        host=host,
        fact="which address each numbered GPU has",
        purpose="joining what the tools say",
        remedy="add `nvidia-smi -q -x`, which says both",
        at=gpu.place(),
        label=f"{numbers} GPUs by number, {addresses_} by address",
    )
