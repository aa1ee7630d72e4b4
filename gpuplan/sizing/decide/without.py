"""A demand with some of its numbers changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args

from gpuplan.sizing.ask.demand import Demand, LanguageDemand
from gpuplan.sizing.ask.given import Given, mapped

D = TypeVar("D", bound=Demand)
# Overrides that narrow the search rather than replace a derived number.
SearchedName = Literal[
    "gpu",
    "partition",
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "replicas",
    "gpu_count",
    "micro_batch",
]
# Those that the search obeys without choosing them: of `Overrides`, and of language models.
Obeyed = Literal["max_num_seqs", "max_num_batched_tokens", "kv_cache_dtype"]
Limiting = Literal["max_model_len", "gpu_memory_utilization"]
Name = SearchedName | Obeyed | Limiting
SEARCHED: tuple[SearchedName, ...] = get_args(SearchedName)
OBEYED: tuple[Obeyed, ...] = get_args(Obeyed)
ENGINE_LIMITS: tuple[Obeyed, ...] = ("max_num_seqs", "max_num_batched_tokens")
LIMITING: tuple[Limiting, ...] = get_args(Limiting)


def overridden(demand: Demand) -> list[Name]:
    """The overrides that are written and that the search regards."""
    names: list[Name] = [
        n for n in (*SEARCHED, *OBEYED) if getattr(demand.overrides, n) is not None
    ]
    if isinstance(demand, LanguageDemand):
        names += [n for n in LIMITING if getattr(demand, n).replaced is not None]
    return names


def without(demand: D, names: Sequence[Name]) -> D:
    """The demand without some of its overrides."""
    own: dict[str, Any] = {n: None for n in names if n not in LIMITING}
    changed = replace(demand, overrides=replace(demand.overrides, **own))

    def derived(number: Given) -> Given:
        usual = number.replaced
        if usual is None or number.field.parts[-1] not in names:
            return number
        return Given(usual.value, usual.unit, usual.source, number.field)

    return mapped(changed, derived)


def with_number(demand: D, path: str, value: float, why: str) -> D | None:
    """The demand with another number in the field at `path`; None where it has none there."""
    changed = False

    def eased(number: Given) -> Given:
        nonlocal changed
        if number.field.path != path:
            return number
        changed = True
        return Given(value, number.unit, why, number.field)

    other = mapped(demand, eased)
    return other if changed else None
