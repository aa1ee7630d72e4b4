"""The GPUs whose measurements are taken for another: what a file declares, and what follows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpuplan.catalog.model import Gpu, StandIn

STAND_INS = ("measured_as", "kernels_as", "collectives_as")  # fields of the file and of the record


def stand_ins(entry: Mapping[str, list[Any]], find: Callable[[str], Gpu]) -> dict[str, Any]:
    """Those that are declared, and after each those of its own; `find` gives their records."""
    named = {use: (find(name), reason, of) for use, (name, reason, of) in entry.items()}
    whole, kernels, exchanges = (named.get(use) for use in STAND_INS)
    nearest = whole[0] if whole else None
    inherited = nearest.kernels_as if nearest else ()
    return {
        "measured_as": _chain(whole) + (nearest.measured_as if nearest else ()),
        "kernels_as": _chain(kernels) + (kernels[0].measured_as if kernels else inherited),
        "collectives_as": (*_chain(exchanges), nearest and nearest.collectives_as, None)[0],
    }


def _chain(named: tuple[Gpu, str, list[str]] | None) -> tuple[StandIn, ...]:
    if named is None:
        return ()
    gpu, reason, of = named
    declared = StandIn(
        identifier=gpu.identifier,
        reason=reason,
        of=tuple(of),
        architecture=gpu.architecture,
        link_bytes_per_s=gpu.link_bytes_per_s.value,
        achieved_bf16=gpu.achieved_bf16,
    )
    return (declared,)
