"""What GPUs reach of their peaks in large matrix products, one against another."""

from __future__ import annotations

from gpuplan.catalog.model import Achieved, Gpu
from gpuplan.sizing.evidence.formula import Quantity, canonical
from gpuplan.sizing.hardware.measured import cards


def reached(part: Quantity, gpu: Gpu, measured: str) -> Quantity:
    """The part of its peak that a kernel reaches on `gpu`, from that on the GPU `measured`, which
    stands for it. Unchanged where large products were measured on neither."""
    if measured == gpu.identifier:
        return part
    own, base = achieved(gpu), achieved(gpu, measured)
    if own is None or base is None or own.part == base.part:
        return part
    ratio = own.part / base.part
    cited = (
        f"{part.source}; x {ratio:.2f} for {gpu.name}: bf16 matrix products reached: {own.source}"
    )
    return Quantity(canonical(min(1.0, part.value * ratio)), part.unit, cited)


def achieved(gpu: Gpu, since: str = "") -> Achieved | None:
    """Of the GPU, else of its nearest stand-in; of the stand-in `since` and those after it."""
    chain = cards(gpu, "kernels")
    start = next((i for i, card in enumerate(chain) if card.identifier == since), 0)
    return next((c.achieved_bf16 for c in chain[start:] if c.achieved_bf16 is not None), None)
