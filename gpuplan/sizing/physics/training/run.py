"""One layout of a training run: GPUs, what they divide, what is recomputed."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Literal

from gpuplan.models.model import Transformer
from gpuplan.plan.model import Basis, Fabric, record
from gpuplan.sizing.data import training as fitted
from gpuplan.sizing.data.training_speed import SOURCE
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Sheet, floats
from gpuplan.sizing.hardware.devices import Device, fabric_rate, quantity
from gpuplan.sizing.hardware.efficiency import peak
from gpuplan.sizing.memory.serving import confidence_memory
from gpuplan.sizing.memory.training import memory
from gpuplan.sizing.model import shapes, widths
from gpuplan.sizing.physics.training import speed
from gpuplan.sizing.physics.training.time import Terms, time

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
    """`gpus` hold data-parallel replicas of `tensor` x `pipeline` x `context` GPUs; `sharding` says
    what the replicas divide. `expert` GPUs among them divide the experts, each stage of a pipeline
    is `virtual` interleaved ones."""

    gpus: int
    sharding: Sharding
    recompute: Recompute
    tensor: int = 1
    pipeline: int = 1
    virtual: int = 1
    context: int = 1
    expert: int = 1

    @property
    def replicas(self) -> float:
        """Ranks of data parallelism."""
        return self.gpus / (self.tensor * self.pipeline * self.context)

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
        self.mamba = model.linear is not None
        self.shape = _shape(latent=model.latent is not None, moe=self.moe)
        self.base = self.shape(floats(scope))

    def given(self, more: Scope) -> Prepared:
        """The same with further numbers, on which the shape does not depend."""
        found = copy(self)
        found.scope, found.base = self.scope | more, self.base | floats(more)
        return found


class Run:
    """A prepared method on a division of devices; only the micro-batch is open."""

    def __init__(self, prepared: Prepared, division: Division) -> None:
        method, many = prepared.method, division.replicas > 1
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
            parallel=division.replicas < division.gpus or division.expert > 1,
            moe=prepared.moe,
        )
        self.time = time(
            Terms(
                moe=prepared.moe,
                adapter=method.adapter,
                quantized=method.quantized,
                exchange=exchange,
                across="fabric_rate" in prepared.scope,
                mamba=prepared.mamba,
                tensor=division.tensor > 1,
                context=division.context > 1,
                pipeline=division.pipeline > 1,
                expert=prepared.moe and division.expert > 1,
            )
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
        return self.time(self.needs(micro_batch))


def _divided(division: Division) -> Scope:
    """What the sharding divides by the number of ranks, and what other parallelism divides."""
    stage = ("none", "zero1", "zero2", "zero3").index(division.sharding)
    ranks = division.replicas
    cited = (
        f"choice: sharding {division.sharding} over {ranks:g} GPUs, recompute {division.recompute}"
    )
    shards = {
        "weight_shards": ranks if stage >= 3 else 1,
        "gradient_shards": ranks if stage >= 2 else 1,
        "optimizer_shards": ranks if stage >= 1 else 1,
        "gpus": division.gpus,
        "data_parallel_size": ranks,
        "tensor_parallel_size": division.tensor,
        "pipeline_parallel_size": division.pipeline,
        "virtual_stages": division.virtual,
        "context_parallel_size": division.context,
        "expert_parallel_size": division.expert,
        "recompute": division.recompute != "none",
        "attention_recompute": division.recompute == "full",
    }
    return {name: Quantity(float(value), "1", cited) for name, value in shards.items()}


def training_scope(
    model: Transformer,
    device: Device,
    method: Method,
    engine: str,
    *,
    many: bool,
    release: float = speed.MIDDLE,
) -> tuple[Scope, Basis]:
    """Model, device and framework; the basis of what is predicted with them."""
    gpu = device.gpu
    of = speed.traits(
        model,
        gpu,
        method.precision,
        fitted.FRAMEWORK_OF.get(engine, engine),
        adapter=method.adapter,
        quantized=method.quantized,
        many=many,
        release=release,
    )
    measured = gpu.identifier in fitted.CALIBRATED_GPUS
    basis: Basis = "calibrated" if measured else "extrapolated"
    fact = peak(gpu, "fp8" if of.precision == "mxfp8" else of.precision)
    assert fact is not None, "unsupported precisions are gated before"
    scope = {**shapes.inputs(model), **widths.inputs(model)}
    scope |= speed.scope(of) | _framework(method, engine)
    scope |= {
        "tensor_parallel_size": constant(1, "1", "data-parallel ranks hold whole layers"),
        "bandwidth": quantity(gpu.memory_bytes_per_s),
        "bf16_peak": quantity(gpu.peak_bf16),
        "peak": quantity(fact),
        "memory_bytes": device.memory_bytes,
        "inside_rate": quantity(gpu.nvlink_bytes_per_s or gpu.pcie_bytes_per_s),
        "prediction_layers": constant(0, "1", "no multi-token prediction"),
        "prediction_heads": constant(0, "1", "no multi-token prediction"),
    }
    return scope, basis


def _framework(method: Method, engine: str) -> Scope:
    framework = fitted.FRAMEWORK_OF.get(engine, "bare")
    own = fitted.FRAMEWORKS[framework]
    gradients, states = fitted.OPTIMIZERS[method.optimizer]
    trained = 2.0 if method.adapter else 3.0
    scope = {
        "loss_bytes": constant(own["loss_bytes"], "B", fitted.MEMORY_SOURCE),
        "fixed_bytes": constant(own["fixed_bytes"], "B", fitted.MEMORY_SOURCE),
        "deepspeed_bytes": constant(own["deepspeed_bytes"], "B", fitted.MEMORY_SOURCE),
        "unpacked_copies": constant(own["unpacked_copies"], "1", fitted.MEMORY_SOURCE),
        **confidence_memory(framework, 0.5),
        "gradient_bytes_each": constant(gradients, "B", f"{method.optimizer}: gradient"),
        "optimizer_bytes_each": constant(states, "B", f"{method.optimizer}: states"),
        "trained_passes": constant(trained, "1", "forward and backward; adapters leave one out"),
        "weight_traffic": constant(4.0 if method.adapter else 14.0, "B", SOURCE),
    }
    if method.adapter:
        width = NF4_BYTES if method.quantized else 2.0
        scope["frozen_bytes_each"] = constant(width, "B", "bytes of a frozen weight")
    if method.lora_rank is not None:
        scope["lora_rank"] = method.lora_rank
    return scope


def link(device: Device, gpus: int, fabric: Fabric | None) -> Scope | None:
    """What bounds the exchange between ranks: the rate inside a node, and that of the fabric where
    they span nodes, or of the nodes' cards where they carry less; None where it is not known."""
    inside = quantity(device.gpu.nvlink_bytes_per_s or device.gpu.pcie_bytes_per_s)
    room = device.offer.gpus_per_node
    if gpus <= room:
        return {"link_rate": inside}
    if fabric is None:
        return None
    return {
        "inside_rate": inside,
        "fabric_rate": fabric_rate(device.offer, fabric),
        "gpus_per_node": Quantity(float(room), "1", "offer: GPUs of a node"),
    }


@cache
def divisors(number: int, most: int) -> tuple[int, ...]:
    """Those up to `most`, ascending."""
    return tuple(n for n in range(1, min(number, most) + 1) if number % n == 0)
