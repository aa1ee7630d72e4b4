"""What GPUs reach of their peaks in large matrix products, one against another."""

from __future__ import annotations

from functools import cache

from gpuplan.catalog.model import Gpu
from gpuplan.sizing.data.achieved import ACHIEVED, SIBLINGS, SOURCE
from gpuplan.sizing.evidence.formula import Quantity, canonical


def reached(part: Quantity, gpu: Gpu, source: str) -> Quantity:
    """The part of its peak that a kernel reaches on the GPU `source`, as it does on `gpu`."""
    ratio = against(gpu.identifier, source)
    if ratio == 1:
        return part
    cited = f"{part.source}; x {ratio:.2f} for {gpu.name}: {SOURCE}"
    return Quantity(canonical(min(1.0, part.value * ratio)), part.unit, cited)


@cache
def against(identifier: str, source: str) -> float:
    """1 where one of the two was not measured."""
    own, other = _part(identifier), _part(source)
    return own / other if identifier != source and own and other else 1.0


def _part(identifier: str) -> float | None:
    near = next((name for start, name in SIBLINGS if identifier.startswith(start)), identifier)
    found = ACHIEVED.get(identifier) or ACHIEVED.get(near)
    return found[0] / found[1] if found else None
