"""One GPU of a group that runs a language model by itself, without a server: its steps with the
constants of a protocol, and how many sequences its memory holds."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Generic, TypeVar

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.plan.model import record
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet, floats
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.efficiency import collective
from gpuplan.sizing.hardware.offers import GpuOffer
from gpuplan.sizing.physics.serving.scopes import (
    decode_scope,
    prefill_scope,
    serving_scope,
    shape,
    traits,
)
from gpuplan.sizing.physics.serving.service import Division, Formats
from gpuplan.sizing.physics.serving.steps import Phase, step

Numbers = Mapping[str, float]
T = TypeVar("T")

MEMORY = Sheet(
    (
        (
            "expert_total",
            Formula(
                "expert_layers * experts * mlp_matrices * expert_hidden * expert_width",
                "1",
                "weights of all routed experts",
            ),
        ),
        (
            "dense_total",
            Formula(
                "hidden_size * mlp_matrices * mlp_width_sum", "1", "dense and shared MLPs' weights"
            ),
        ),
        (
            "weight_bytes",
            Formula(
                "((parameters - other_parameters - expert_total - dense_total) * matmul_bytes_each "
                "+ dense_total * dense_bytes_each + 2 * other_parameters "
                "+ expert_total * expert_bytes_each / data_parallel_size) "
                "/ (tensor_parallel_size * pipeline_stages)",
                "B",
                "weights on one GPU; embeddings in bf16, experts over all ranks",
            ),
        ),
        (
            "sequence_bytes",
            Formula(
                "((full_layers * held + sliding_layers * min(held, sliding_window)) * cache_width "
                "* kv_bytes_each + 4 * state_width) / pipeline_stages",
                "B",
                "cache and states of one sequence on one GPU",
            ),
        ),
        (
            "held_sequences",
            Formula(
                "max(0, 0.95 * (memory - weight_bytes - 4000000000)) / sequence_bytes",
                "1",
                "sequences whose cache fits: of what is free, beside 4 GB for activations, graphs",
            ),
        ),
    )
)
_NO_EXPERTS = {
    "expert_layers": 0.0,
    "experts": 0.0,
    "expert_width": 0.0,
    "expert_hidden": 0.0,
    "expert_bytes_each": 0.0,
}


class Same(Generic[T]):
    """A key for caches: equal for the same object only, which is faster than comparing records."""

    __slots__ = ("value",)

    def __init__(self, value: T) -> None:
        self.value = value

    def __hash__(self) -> int:
        return id(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value


@record
class Runner:
    """A model on the GPUs of `division`. `numbers` is the scope of a step without its load, `kind`
    the sheet that it needs. `bridged`: its GPUs talk over PCIe."""

    model: Transformer
    formats: Formats
    division: Division
    numbers: Numbers
    kind: Mapping[str, bool]
    bridged: bool
    capability: str | None


def runner(
    model: Transformer, gpu: Gpu, engine: str, formats: Formats, division: Division
) -> Runner:
    """`engine` names the tables of kernels."""
    parts = (division.tensor_parallel_size, division.data_parallel_size, division.pipeline_stages)
    low = (formats.matmul, formats.experts, formats.kv, formats.dense)
    return _runner(Same(model), Same(gpu), engine, low, parts)


@cache
def _runner(
    model_key: Same[Transformer],
    gpu_key: Same[Gpu],
    engine: str,
    low: tuple[str, str, str, str | None],
    parts: tuple[int, int, int],
) -> Runner:
    model, gpu = model_key.value, gpu_key.value
    formats = Formats(matmul=low[0], experts=low[1], kv=low[2], dense=low[3])
    tensor, data, stages = parts
    division = Division(
        tensor_parallel_size=tensor, data_parallel_size=data, pipeline_stages=stages
    )
    device = whole(GpuOffer(gpu=gpu, gpus_per_node=8))
    scope = serving_scope(model, device, engine, formats, division)
    if stages > 1 and "link_launch" not in scope:
        between = collective("all_reduce", gpu, engine, 2)
        scope |= {f"link_{name}": value for name, value in between.items()}
    sheet = shape(latent=model.latent is not None, moe=model.experts is not None, partition=False)
    spread = {"input_mean": 1.0, "input_p95": 1.0, "memory": gpu.memory_bytes.value}
    return Runner(
        model=model,
        formats=formats,
        division=division,
        numbers=sheet(floats(scope) | spread),
        kind=traits(model, division),
        bridged=gpu.nvlink_bytes_per_s is None,
        capability=gpu.compute_capability,
    )


def decode(
    runner: Runner, constants: Numbers, sequences: float, context: float
) -> dict[str, float]:
    """One token of `sequences` on each rank, at a mean `context`."""
    load = {"sequences": sequences, "context": context}
    return _step(runner, "decode", decode_scope(_scope(runner, constants) | load))


def prefill(runner: Runner, constants: Numbers, prompts: float, length: float) -> dict[str, float]:
    """`prompts` of `length` tokens together on each rank."""
    scope = _scope(runner, constants) | {"prompt": length}
    scope |= {n: scope[n] * prompts for n in ("prompt_width", "prompt_io_width", "state_width")}
    load = {"tokens": prompts * length, "outputs": prompts}
    return _step(runner, "prefill", prefill_scope(scope, ("prompt", "prompt"), 1.0) | load)


def held_sequences(runner: Runner, length: float) -> float:
    """Sequences of `length` tokens whose cache one rank holds, over all stages of a pipeline."""
    return MEMORY({**_NO_EXPERTS, **runner.numbers, "held": length})["held_sequences"]


def _scope(runner: Runner, constants: Numbers) -> dict[str, float]:
    scope = {**runner.numbers, **constants}
    if runner.bridged:
        scope["link_factor"] *= constants["bridge_factor"]
    return scope


def _step(runner: Runner, phase: Phase, scope: dict[str, float]) -> dict[str, float]:
    return step(phase, **runner.kind)(scope)
