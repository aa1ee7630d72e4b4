"""The numbers that a serving step needs: model, device, kernels and the engine's constants."""

from __future__ import annotations

from functools import cache
from typing import TypeVar

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.plan.model import record
from gpuplan.sizing import shapes
from gpuplan.sizing.checkpoints import WEIGHT_BYTES
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.devices import BANDWIDTH, Device, quantity
from gpuplan.sizing.efficiency import CALIBRATED_GPUS, ENGINES, Kernel, all_reduce, kernel, peak
from gpuplan.sizing.formula import Quantity, constant
from gpuplan.sizing.latency import SPREAD
from gpuplan.sizing.sheet import Sheet

Scope = dict[str, Quantity]
N = TypeVar("N", float, Quantity)
ONE = constant(1, "1", "the last token of a prompt")

FOUR_BIT = ("int4", "nvfp4", "mxfp4")
# Published fp8 checkpoints of these scale blocks of 128 x 128 weights, and activations on the fly.
BLOCK_SCALED = ("Deepseek", "Qwen3", "MiniMax", "Glm", "Kimi")


@record
class Formats:
    """Number formats of a checkpoint: of its dense layers, its experts, its KV cache."""

    matmul: str
    experts: str
    kv: str


def formats(model: Transformer, precision: str, kv_cache_dtype: str) -> Formats:
    """Four-bit checkpoints of mixture models keep all but the experts in bf16. An `auto` cache is
    bf16."""
    experts = precision
    if precision == "fp8" and model.architecture.startswith(BLOCK_SCALED):
        experts = "fp8-block"
    matmul = "bf16" if model.experts and precision in FOUR_BIT else experts
    return Formats(matmul=matmul, experts=experts, kv="fp8" if kv_cache_dtype == "fp8" else "bf16")


def serving_scope(
    model: Transformer, device: Device, engine: str, layout: Formats, tensor_parallel_size: int
) -> tuple[Scope, bool]:
    """The scope of `steps.step`, and whether all of it was measured on this GPU and engine."""
    gpu = device.gpu
    latent = "latent_" if model.latent else ""
    kernels = {
        "matmul": kernel("matmul", gpu, "", layout.matmul),
        "head": kernel("matmul", gpu, "", "bf16"),
        "decode": kernel(f"decode_{latent}attention", gpu, engine, layout.kv),
        "prefill": kernel(f"prefill_{latent}attention", gpu, engine, "bf16"),
    }
    if model.experts:
        kernels["expert"] = kernel("experts", gpu, engine, layout.experts)
    scope = (
        {**shapes.inputs(model)} | _device(device) | engine_constants(engine, bool(model.latent))
    )
    for name, entry in kernels.items():
        scope |= _kernel(name, entry)
    scope |= _formats(gpu, layout, bool(model.experts))
    scope["tensor_parallel_size"] = Quantity(
        float(tensor_parallel_size), "1", "choice: cheapest that meets every objective"
    )
    if tensor_parallel_size > 1:
        launch, rate = all_reduce(gpu, engine, tensor_parallel_size)
        scope |= {"link_launch": launch, "link_rate": rate}
    scope["scaled_inputs"] = _scaled_inputs(model, layout)
    measured = gpu.identifier in CALIBRATED_GPUS and engine in ENGINES
    return scope, measured and device.partition is None


@cache
def shape(*, latent: bool, moe: bool, partition: bool) -> Sheet:
    """A partition's bandwidth, dimensions on one GPU, spread of the prompts."""
    attention = shapes.LATENT if latent else shapes.GROUPED
    experts = shapes.EXPERTS if moe else Sheet(())
    share = Sheet((("bandwidth", BANDWIDTH),) if partition else ())
    return share + attention + shapes.MLP + experts + SPREAD


def decode_scope(scope: dict[str, N]) -> dict[str, N]:
    """What a decode step takes: one token of every sequence."""
    new = {"tokens": scope["sequences"], "outputs": scope["sequences"]}
    return scope | new | _attention(scope, "decode")


def prefill_scope(scope: dict[str, N], prompt: str, one: N) -> dict[str, N]:
    """What the prefill of a prompt takes: all its tokens, of which the last one samples."""
    new = {"tokens": scope[prompt], "prompt": scope[prompt], "outputs": one}
    return scope | new | _attention(scope, "prefill")


def _attention(scope: dict[str, N], name: str) -> dict[str, N]:
    """The attention kernel of a phase."""
    return {f"attention_{p}": scope[f"{name}_{p}"] for p in ("launch", "read", "compute")}


def _kernel(name: str, entry: Kernel) -> Scope:
    return {
        f"{name}_launch": entry.launch,
        f"{name}_read": entry.read,
        f"{name}_compute": entry.compute,
    }


def _device(device: Device) -> Scope:
    return {
        "gpu_bandwidth" if device.partition else "bandwidth": quantity(
            device.gpu.memory_bytes_per_s
        ),
        "bandwidth_share": device.bandwidth_share,
        "compute_share": device.compute_share,
        "bf16_peak": quantity(device.gpu.peak_bf16),
    }


def _formats(gpu: Gpu, layout: Formats, moe: bool) -> Scope:
    def width(name: str) -> Quantity:
        return constant(WEIGHT_BYTES[name.removesuffix("-block")], "B", f"bytes of a {name} weight")

    def peak_of(name: str) -> Quantity:
        fact = peak(gpu, name.removesuffix("-block"))
        assert fact is not None, "unsupported formats are gated before"
        return quantity(fact)

    kv = 1.0 if layout.kv == "fp8" else 2.0
    scope = {
        "matmul_bytes_each": width(layout.matmul),
        "matmul_peak": peak_of(layout.matmul),
        "kv_bytes_each": constant(kv, "B", f"bytes of a {layout.kv} element"),
    }
    if moe:
        scope |= {
            "expert_bytes_each": width(layout.experts),
            "expert_peak": peak_of(layout.experts),
        }
    return scope


def _scaled_inputs(model: Transformer, layout: Formats) -> Quantity:
    """Matrix products whose inputs are scaled in blocks while they run."""
    count = 0
    experts = model.experts
    moe_layers = experts.layers if experts else 0
    if layout.matmul == "fp8-block":
        count += 2 * model.layers + 2 * (model.layers - moe_layers)
        count += 2 * moe_layers if experts and experts.shared else 0
    if layout.experts == "fp8-block":
        count += 2 * moe_layers
    return Quantity(float(count), "1", model.source)


@cache
def engine_constants(engine: str, latent: bool) -> Scope:
    """Calibrated factors and overheads. An engine that was not measured takes vLLM's."""
    name = engine if engine in calibration.ENGINE else "vllm"
    cited, first = (f"{s}, {name}" for s in (calibration.SOURCE, calibration.FIRST_SOURCE))
    scope = {n: constant(v, "1", calibration.SOURCE) for n, v in calibration.FACTORS.items()}
    scope |= {n: constant(v, _unit(n), cited) for n, v in calibration.ENGINE[name].items()}
    scope |= {n: constant(v, _unit(n), first) for n, v in calibration.FIRST[name].items()}
    if latent:
        extra = scope["layer_overhead"].value + calibration.LATENT_OVERHEAD
        scope["layer_overhead"] = constant(extra, "s", f"{cited}, latent attention")
    return scope


def _unit(field: str) -> str:
    return "s" if field.endswith("overhead") else "1"
