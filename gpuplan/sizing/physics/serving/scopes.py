"""The numbers that a serving step needs: model, device, kernels and the engine's constants."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import TypeVar

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.sizing.calibration.served import OWN, TUNED
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet
from gpuplan.sizing.hardware.devices import BANDWIDTH, Device, quantity
from gpuplan.sizing.hardware.efficiency import KERNEL, Kernel, collective, kernel, peak
from gpuplan.sizing.model import shapes
from gpuplan.sizing.model.checkpoints import WEIGHT_BYTES
from gpuplan.sizing.physics.serving.service import Division, Formats

N = TypeVar("N", float, Quantity)
ONE = constant(1, "1", "the last token of a prompt")
ALONE = constant(1, "1", "a step decodes a sequence, where there is less than one on average")

FABRIC_LAUNCH = constant(
    1e-5, "s", "a message between nodes: p2p_latency of aiconfigurator-core 0.12.0 (2026-08-21)"
)

FOUR_BIT = ("int4", "nvfp4", "mxfp4")
# Published fp8 checkpoints of these scale blocks of 128 x 128 weights, and activations on the fly:
# for models whose configuration is of other weights, or leaves it out.
BLOCK_SCALED = ("Deepseek", "Qwen3", "MiniMax", "Glm", "Kimi")
# Ranks of attention data parallelism meet in every expert layer: a prompt of one stalls all.
LOCKSTEP = "ranks wait for each other in every expert layer, measured on vLLM"
BALANCED = ("tensorrt-llm",)  # it starts prompts of all ranks in the same steps
ENGINE_WITHOUT_TABLES = "vllm"
# What beside others delays a first token by an engine's own work, not by their prompts. Where a
# server starts for each measurement, its first requests compile what they need; elsewhere it grows
# with the requests, half of it being there at `gathering` of them.
AT_WORK = ("contended_overhead", "first_step_factor", "first_sequence_overhead")
HALF_A_STEP = 0.5  # that a request waits on average, which comes while a step runs


def formats(model: Transformer, precision: str, kv_cache_dtype: str) -> Formats:
    """Four-bit checkpoints of mixture models keep attention in bf16; weight-only ones (int4, mxfp4)
    all but the experts. An `auto` cache is bf16."""
    experts = "fp8-block" if precision == "fp8" and _in_blocks(model) else precision
    matmul = "bf16" if model.experts and precision in FOUR_BIT else experts
    return Formats(
        matmul=matmul,
        dense="nvfp4" if precision == "nvfp4" else matmul,
        experts=experts,
        kv="fp8" if kv_cache_dtype == "fp8" else "bf16",
    )


def _in_blocks(model: Transformer) -> bool:
    """Whether a scale of its weights of 8 bits is a block's."""
    stated = model.scaled_in_blocks if model.checkpoint_precision == "fp8" else None
    return model.architecture.startswith(BLOCK_SCALED) if stated is None else stated


def traits(model: Transformer, division: Division) -> dict[str, bool]:
    """Which sheet of `steps.step` the model takes."""
    return {
        "moe": model.experts is not None,
        "parallel": division.tensor_parallel_size > 1,
        "windowed": model.sliding_layers > 0,
        "linear": model.linear is not None,
        "sparse": model.sparse is not None and model.latent is not None,
        "spread": division.data_parallel_size > 1 and model.experts is not None,
        "staged": division.pipeline_stages > 1,
        "across": division.nodes > 1,
    }


def serving_scope(
    model: Transformer,
    device: Device,
    engine: str,
    layout: Formats,
    division: Division,
    *,
    site: str = OWN,
    fabric_rate: Quantity | None = None,
) -> Scope:
    """The scope of `steps.step`, and of the latencies that are measured at a `site`."""
    gpu, ranks = device.gpu, division.data_parallel_size
    constants = engine_constants(engine, bool(model.latent), gpu.vendor, site in TUNED)
    scope = {**shapes.inputs(model)} | _device(device) | constants
    if not model.experts:
        scope["prompt_routing"] = constant(1, "1", "no experts, no routing")
    for name, entry in _kernels(model, device, engine, layout).items():
        scope |= {f"{name}_{number}": value for number, value in entry.items()}
    scope |= _formats(gpu, layout, bool(model.experts))
    for name in (
        "tensor_parallel_size",
        "data_parallel_size",
        "pipeline_stages",
        "expert_parallel_size",
    ):
        count = float(getattr(division, name))
        scope[name] = Quantity(count, "1", "choice: cheapest that meets every objective")
    stalling = ranks if model.experts and engine not in BALANCED else 1
    scope["stalling_ranks"] = Quantity(float(stalling), "1", f"constant: {LOCKSTEP}")
    scope |= _links(gpu, engine, division)
    if division.nodes > 1:
        assert fabric_rate is not None, "a replica over nodes has a fabric between them"
        scope |= _across(division, fabric_rate)
    if ranks > 1 and model.experts:
        kept = scope["all_reduces"].value - model.experts.layers
        scope["all_reduces"] = Quantity(kept, "1", model.source)
    return scope | _scaled_inputs(model, layout)


def _kernels(model: Transformer, device: Device, engine: str, layout: Formats) -> dict[str, Kernel]:
    gpu, latent = device.gpu, "latent_" if model.latent else ""
    kernels = {
        "matmul": kernel("matmul", gpu, "", layout.matmul),
        "dense": kernel("matmul", gpu, "", layout.mlp),
        "head": kernel("matmul", gpu, "", "bf16"),
        "decode": kernel(f"decode_{latent}attention", gpu, engine, layout.kv),
        "prefill": kernel(f"prefill_{latent}attention", gpu, engine, "bf16"),
    }
    if model.experts:
        kernels["expert"] = kernel("experts", gpu, engine, layout.experts)
    if model.linear:
        kernels["decode_state"] = kernel("decode_delta", gpu, "", "bf16")
        kernels["prefill_state"] = kernel("prefill_delta", gpu, "", "bf16")
    if model.sparse and model.latent:
        kernels["index"] = kernel("decode_indexer", gpu, "", "fp8")
        kernels["gathered"] = kernel("prefill_sparse_attention", gpu, "", "fp8")
    return kernels


def _links(gpu: Gpu, engine: str, division: Division) -> Scope:
    scope: Scope = {}
    tensor, data = division.tensor_parallel_size, division.data_parallel_size
    if tensor > 1 or division.pipeline_stages > 1:
        over = tensor * division.nodes > division.gpus
        reduce = collective("all_reduce", gpu, engine, tensor, nodes=over)
        scope |= {f"link_{name}": value for name, value in reduce.items()}
    if data > 1:
        both = collective("gather", gpu, "", tensor * data)
        scope |= {f"gather_{name}": value for name, value in both.items()}
    return scope


def _across(division: Division, fabric_rate: Quantity) -> Scope:
    """What a replica over nodes needs beside its links inside one."""
    nodes = float(division.nodes)
    return {
        "replica_nodes": Quantity(nodes, "1", "choice: the fewest that hold a replica, or cheaper"),
        "node_gpus": Quantity(division.gpus / nodes, "1", "offer: GPUs of a node"),
        "fabric_rate": fabric_rate,
        "fabric_launch": FABRIC_LAUNCH,
    }


@cache
def shape(*, latent: bool, moe: bool, partition: bool) -> Sheet:
    """A partition's bandwidth, dimensions on one GPU."""
    attention = shapes.LATENT if latent else shapes.GROUPED
    experts = shapes.EXPERTS if moe else Sheet(())
    share = Sheet((("bandwidth", BANDWIDTH),) if partition else ())
    return share + attention + shapes.MLP + experts


def decode_scope(scope: dict[str, N]) -> dict[str, N]:
    """What a decode step takes: one token of every sequence. Whoever decodes is one, however few
    there are on average."""
    batch = _at_least_one(scope["sequences"])
    new = dict.fromkeys(("sequences", "tokens", "outputs"), batch)
    return scope | new | _attention(scope, "decode")


def _at_least_one(sequences: N) -> N:
    if isinstance(sequences, Quantity):  # no float is one, which mypy cannot know
        return ALONE if sequences.value < 1 else sequences
    return max(1.0, sequences) if isinstance(sequences, float) else sequences


# A prompt, and the one that a token of it stands in on average.
MEAN_PROMPT = ("input_mean", "longer_input")
LONG_PROMPT = ("input_p95", "input_p95")


def prefill_scope(scope: dict[str, N], prompt: tuple[str, str], one: N) -> dict[str, N]:
    """What the prefill of a prompt takes: all its tokens, of which the last one samples; each
    attends to those `around` it."""
    length, around = (scope[name] for name in prompt)
    new = {"tokens": length, "prompt": length, "around": around, "outputs": one}
    return scope | new | _attention(scope, "prefill")


PREFILLED = (
    *("seconds", "work_seconds", "overhead_seconds", "launch_seconds", "roofline_seconds"),
    *("tokens", "own_seconds"),  # the latter where a prompt is computed in steps of others
)


def prefilled(done: Mapping[str, N], prefix: str) -> dict[str, N]:
    """What the latencies take of the prefill of a prompt, by names that begin with `prefix`."""
    return {f"{prefix}_{name}": done[name] for name in PREFILLED if name in done}


def full_step_scope(scope: dict[str, float]) -> dict[str, float]:
    """What a step of `step_prompts` mean prompts takes."""
    count = scope["step_prompts"]
    one = prefill_scope(scope, MEAN_PROMPT, count)
    tokens = count * scope["input_mean"]
    return one | {"tokens": tokens, "prompt": tokens}


def _attention(scope: dict[str, N], phase: str) -> dict[str, N]:
    """The attention kernels of a phase."""
    kernels = {f"attention_{n}": scope[f"{phase}_{n}"] for n in KERNEL[:5]}
    if f"{phase}_state_launch" in scope:
        kernels |= {f"state_{n}": scope[f"{phase}_state_{n}"] for n in KERNEL[:5]}
    return kernels


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
        """Formats that a GPU cannot compute in are widened to bf16, as weight-only kernels do."""
        return quantity(peak(gpu, name.removesuffix("-block")) or gpu.peak_bf16)

    kv = 1.0 if layout.kv == "fp8" else 2.0
    scope = {
        "matmul_bytes_each": width(layout.matmul),
        "matmul_peak": peak_of(layout.matmul),
        "dense_bytes_each": width(layout.mlp),
        "dense_peak": peak_of(layout.mlp),
        "kv_bytes_each": constant(kv, "B", f"bytes of a {layout.kv} element"),
    }
    if moe:
        scope |= {
            "expert_bytes_each": width(layout.experts),
            "expert_peak": peak_of(layout.experts),
        }
    return scope


def _scaled_inputs(model: Transformer, layout: Formats) -> Scope:
    """Matrix products whose inputs are scaled in blocks while they run: of 128 in fp8
    (`scaled_inputs`), of 16 in nvfp4 (`block_inputs`)."""
    experts = model.experts
    moe_layers = experts.layers if experts else 0
    mlps = model.dense_layers + (moe_layers if experts and experts.shared else 0)
    counts = {"fp8-block": 0, "nvfp4": 0}
    attention_layers = model.layers - model.mlp_free_layers if model.linear else model.cached_layers
    for name, count in (
        (layout.matmul, 2 * attention_layers),
        (layout.mlp, 2 * mlps),
        (layout.experts, 2 * moe_layers),
    ):
        if name in counts:
            counts[name] += count
    return {
        "scaled_inputs": Quantity(float(counts["fp8-block"]), "1", model.source),
        "block_inputs": Quantity(float(counts["nvfp4"]), "1", model.source),
    }


@cache
def engine_constants(engine: str, latent: bool, vendor: str, restarted: bool = False) -> Scope:
    """Calibrated factors and overheads. An engine that was not measured takes vLLM's.
    `restarted`: a server starts for each measurement, which its means show."""
    name = engine if engine in calibration.ENGINE else ENGINE_WITHOUT_TABLES
    cited, first = (f"{s}, {name}" for s in (calibration.SOURCE, calibration.FIRST_SOURCE))
    own, vendors = calibration.ENGINE[name], calibration.VENDOR.get(vendor, {})
    values = {n: (v, calibration.SOURCE) for n, v in calibration.FACTORS.items()}
    values |= {n: (v, cited) for n, v in own.items()}
    values |= {n: (v, first) for n, v in _first(name, restarted).items()}
    for field in own if vendors else ():
        if field.endswith("overhead"):
            value = vendors.get(field, own[field] * vendors["overhead"])
            values[field] = value, f"{cited}, {vendor}"
    for field, factor in vendors.items():
        if field in values and not field.endswith("overhead"):
            value, source = values[field]
            values[field] = value * factor, f"{source}, {vendor}"
    captured = values.pop("captured")[0]
    if restarted:
        values["eager_seconds"] = values["eager_seconds"][0] * captured, f"{cited}, tuned settings"
    more = values.pop("eager_latent")[0] if latent else 0.0
    values["eager_attention"] = 1 + more, calibration.SOURCE
    if latent:
        extra = values["layer_overhead"][0] + calibration.LATENT_OVERHEAD
        values["layer_overhead"] = extra, f"{cited}, latent attention"
    return {n: constant(value, _unit(n), source) for n, (value, source) in values.items()}


def _first(name: str, restarted: bool) -> dict[str, float]:
    """Constants of the first token."""
    constants = dict(calibration.FIRST_TOKEN[name])
    settled = constants.pop("settled")
    if restarted:
        constants["gathering"] = 0.0
    else:
        constants |= {field: constants[field] * settled for field in AT_WORK}
    return constants | {"half_a_step": HALF_A_STEP}


def _unit(field: str) -> str:
    return "s" if field.endswith(("overhead", "seconds")) else "1"
