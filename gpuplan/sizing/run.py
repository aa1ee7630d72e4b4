"""One layout of a training run: GPUs, what they divide, what is recomputed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Literal

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Basis, Fabric, record
from gpuplan.sizing import shapes
from gpuplan.sizing.data import training as fitted
from gpuplan.sizing.devices import Device, quantity
from gpuplan.sizing.efficiency import peak
from gpuplan.sizing.formula import Quantity, constant
from gpuplan.sizing.sheet import Sheet, floats
from gpuplan.sizing.training_memory import memory
from gpuplan.sizing.training_time import time

Scope = dict[str, Quantity]
Sharding = Literal["none", "zero1", "zero2", "zero3"]
Recompute = Literal["none", "selective", "full"]
NF4_BYTES = 4.127 / 8  # double-quantized nf4


@record
class Method:
    """What is trained and how."""

    adapter: bool
    quantized: bool
    precision: str
    optimizer: str
    lora_rank: Quantity | None


@dataclass(frozen=True, slots=True)
class Division:
    """`gpus` data-parallel ranks; `sharding` says what they divide."""

    gpus: int
    sharding: Sharding
    recompute: Recompute

    @property
    def exchange(self) -> str:
        return "weights" if self.sharding == "zero3" else "gradients"


@cache
def _shape(*, latent: bool, moe: bool) -> Sheet:
    attention = shapes.LATENT if latent else shapes.GROUPED
    return attention + shapes.MLP + (shapes.EXPERTS if moe else Sheet(()))


class Prepared:
    """A method on a device: the scope, and its shape evaluated once for all divisions."""

    def __init__(self, model: Transformer, method: Method, scope: Scope) -> None:
        self.method, self.moe, self.scope = method, model.experts is not None, scope
        self.shape = _shape(latent=model.latent is not None, moe=self.moe)
        self.base = self.shape(floats(scope))


class Run:
    """A prepared method on a division of devices; only the micro-batch is open."""

    def __init__(self, prepared: Prepared, division: Division) -> None:
        method, many = prepared.method, division.gpus > 1
        gathered = division.sharding == "zero3"
        exchange = division.exchange if many else "none"
        if method.adapter:
            exchange = "frozen" if gathered else "none"
        self.prepared, self.division = prepared, division
        self.memory = memory(
            adapter=method.adapter,
            quantized=method.quantized,
            recompute=division.recompute,
            gathered=gathered,
        )
        self.time = time(
            moe=prepared.moe,
            adapter=method.adapter,
            quantized=method.quantized,
            exchange=exchange,
            across="fabric_rate" in prepared.scope,
        )
        self._base = prepared.base | floats(_divided(division))

    @property
    def scope(self) -> Scope:
        return self.prepared.scope | _divided(self.division)

    def needs(self, micro_batch: int) -> dict[str, float]:
        """The memory sheet at a micro-batch."""
        return self.memory(self._base | {"micro_batch": micro_batch})

    def at(self, micro_batch: int) -> dict[str, float]:
        """Memory and time at a micro-batch; accumulation reaches the global batch exactly."""
        scope = self.needs(micro_batch)
        ranks = self.division.gpus * micro_batch
        scope["gradient_accumulation_steps"] = scope["global_batch"] / ranks
        return self.time(scope)


def _divided(division: Division) -> Scope:
    """What the sharding divides by the number of ranks."""
    ranks, stage = division.gpus, ("none", "zero1", "zero2", "zero3").index(division.sharding)
    cited = (
        f"choice: sharding {division.sharding} over {ranks} GPUs, recompute {division.recompute}"
    )
    shards = {
        "weight_shards": ranks if stage >= 3 else 1,
        "gradient_shards": ranks if stage >= 2 else 1,
        "optimizer_shards": ranks if stage >= 1 else 1,
        "gpus": ranks,
        "recompute": division.recompute != "none",
        "attention_recompute": division.recompute == "full",
    }
    return {name: Quantity(float(value), "1", cited) for name, value in shards.items()}


def training_scope(
    model: Transformer, device: Device, method: Method, engine: str, *, many: bool
) -> tuple[Scope, Basis]:
    """Model, device and framework; the basis of what is predicted with them."""
    gpu = device.gpu
    name = fitted.NEAREST.get(gpu.architecture, gpu.architecture)
    own = fitted.ARCHITECTURES.get(name, fitted.ARCHITECTURES["ampere"])
    measured = gpu.identifier in fitted.CALIBRATED_GPUS
    basis: Basis = "calibrated" if measured else "extrapolated"
    scope = {**shapes.inputs(model)} | _framework(method, engine, many=many)
    scope |= {
        "tensor_parallel_size": constant(1, "1", "data-parallel ranks hold whole layers"),
        "linear_parameters": Quantity(float(model.linear_parameters), "1", model.source),
        "adapter_width": Quantity(float(_adapter_width(model)), "1", model.source),
        "operand_width": Quantity(float(_operand_width(model)), "1", model.source),
        "bandwidth": quantity(gpu.memory_bytes_per_s),
        "bf16_peak": quantity(gpu.peak_bf16),
        "memory_bytes": device.memory_bytes,
    }
    fact = peak(gpu, method.precision)
    assert fact is not None, "unsupported precisions are gated before"
    faster = _generation(gpu)
    cited = f"{fitted.SOURCE}, {name}"
    low = "fp8" if method.precision == "fp8" and "fp8" in own else "bf16"
    scope |= {
        "peak": quantity(fact),
        "compute": constant(own[low] * faster, "1", cited),
        "bf16_compute": constant(own["bf16"] * faster, "1", cited),
        "attention_compute": constant(own["attention"] * faster, "1", cited),
        "operand_factor": constant(own["operands"], "1", cited),
        "elementwise_bytes": constant(264.0 if model.experts else 176.0, "B", cited),
    }
    return scope, basis


def _generation(gpu: Gpu) -> float:
    """Blackwell's siblings against B200."""
    ultra = fitted.ULTRA if "300" in gpu.identifier else 1.0
    grace = fitted.GRACE if gpu.identifier.startswith("gb") else 1.0
    return ultra * grace if gpu.architecture == "blackwell" else 1.0


def _framework(method: Method, engine: str, *, many: bool) -> Scope:
    own = fitted.FRAMEWORKS[fitted.FRAMEWORK_OF.get(engine, "bare")]
    kind = "qlora" if method.quantized else "lora" if method.adapter else "full"
    slower = own["slower"]
    if method.adapter:
        slower *= own["adapter_slower"] * (own["parallel_slower"] if many else 1)
    gradients, states = fitted.OPTIMIZERS[method.optimizer]
    trained = 2.0 if method.adapter else 3.0
    scope = {
        "slower": constant(slower, "1", f"{fitted.SOURCE}, {engine}"),
        "host_seconds": constant(own[f"host_{kind}"], "s", f"{fitted.SOURCE}, {engine}"),
        "loss_bytes": constant(own["loss_bytes"], "B", fitted.MEMORY_SOURCE),
        "fixed_bytes": constant(own["fixed_bytes"], "B", fitted.MEMORY_SOURCE),
        "deepspeed_bytes": constant(own["deepspeed_bytes"], "B", fitted.MEMORY_SOURCE),
        "gradient_bytes_each": constant(gradients, "B", f"{method.optimizer}: gradient"),
        "optimizer_bytes_each": constant(states, "B", f"{method.optimizer}: states"),
        "trained_passes": constant(trained, "1", "forward and backward; adapters leave one out"),
        "weight_traffic": constant(4.0 if method.adapter else 14.0, "B", fitted.SOURCE),
    }
    if method.adapter:
        width = NF4_BYTES if method.quantized else 2.0
        scope["frozen_bytes_each"] = constant(width, "B", "bytes of a frozen weight")
    if method.lora_rank is not None:
        scope["lora_rank"] = method.lora_rank
    return scope


def link(device: Device, gpus: int, fabric: Fabric | None) -> Scope | None:
    """What bounds the exchange between ranks: the rate inside a node, and that of the fabric where
    they span nodes; None where it is not known."""
    inside = quantity(device.gpu.nvlink_bytes_per_s or device.gpu.pcie_bytes_per_s)
    room = device.offer.gpus_per_node
    if gpus <= room:
        return {"link_rate": inside}
    if fabric is None:
        return None
    return {
        "inside_rate": inside,
        "fabric_rate": Quantity(fabric.bytes_per_s_per_gpu, "B/s", "manifest: platform.fabric"),
        "gpus_per_node": Quantity(float(room), "1", "offer: GPUs of a node"),
    }


def _widths(model: Transformer) -> list[tuple[int, int, int]]:
    """(in, out, how many) of the linear layers that every token passes, without experts."""
    heads, kv = model.attention_heads * model.head_dim, model.kv_heads * model.head_dim
    h, layers = model.hidden_size, model.layers
    experts = model.experts
    moe = experts.layers if experts else 0
    found = [(h, heads, layers), (h, kv, 2 * layers), (heads, h, layers)]
    if model.latent:
        found = _latent_widths(model)
    widths = [(model.intermediate_size, layers - moe)]
    if experts and experts.shared:
        widths.append((experts.shared * experts.shared_intermediate_size, moe))
    up = 2 if model.gated_mlp else 1
    for width, count in widths:
        found += [(h, width, up * count), (width, h, count)]
    return found


def _latent_widths(model: Transformer) -> list[tuple[int, int, int]]:
    latent = model.latent
    assert latent is not None
    h, heads, layers = model.hidden_size, model.attention_heads, model.layers
    key = latent.qk_nope_head_dim + latent.qk_rope_head_dim
    query = latent.q_lora_rank or h
    return [
        (h, latent.q_lora_rank or 0, layers),
        (query, heads * key, layers),
        (h, latent.kv_lora_rank + latent.qk_rope_head_dim, layers),
        (latent.kv_lora_rank, heads * (latent.qk_nope_head_dim + latent.v_head_dim), layers),
        (heads * latent.v_head_dim, h, layers),
    ]


def _adapter_width(model: Transformer) -> int:
    return sum((a + b) * count for a, b, count in _widths(model) if a and b)


def _operand_width(model: Transformer) -> int:
    """Inputs and outputs of all products of a token, those of its experts as well."""
    experts = model.experts
    routed = 0
    if experts:
        up = 3 if model.gated_mlp else 2
        one = up * (model.hidden_size + experts.intermediate_size)
        routed = experts.layers * experts.active * one
    return _adapter_width(model) + routed


@cache
def divisors(number: int, most: int) -> tuple[int, ...]:
    """Those up to `most`, ascending."""
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)
