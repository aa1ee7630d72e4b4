"""Image generation: time and memory of a diffusion pipeline, and the replicas that it takes."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Diffusion
from gpuplan.plan.model import Basis, Flip, Shortfall
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.ask.limits import peak_rate, requests, time_limit, weighed_hours
from gpuplan.sizing.candidates.choose import Candidate, nodes_gate
from gpuplan.sizing.candidates.devices import devices
from gpuplan.sizing.candidates.gates import count_gate, memory_gate, refused, stopped
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors, at_confidence
from gpuplan.sizing.evidence.sheet import Sheet, floats
from gpuplan.sizing.hardware.devices import Device, quantity
from gpuplan.sizing.hardware.efficiency import peak, unsupported
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.model.checkpoints import WEIGHT_BYTES
from gpuplan.sizing.physics.images.denoising import share
from gpuplan.sizing.physics.images.speed import Correction, correction, unet_part

MOST_BATCH = 8
IDLE_ROOM = constant(0.8, "1", "busy part of a replica, where no latency is asked for")
PRECISION, MEMORY, OBJECTIVE, REPLICAS, NODES = range(5)

Scope = dict[str, Quantity]

PIPELINE = Sheet(
    (
        (
            "size_ratio",
            Formula("pixels / reference_pixels", "1", "the mean image over the reference one"),
        ),
        (
            "linear_flop",
            Formula(
                "passes_per_step * flop_per_step * (1 - attention_share) * size_ratio",
                "FLOP",
                "a step's weights and convolutions grow with the pixels",
            ),
        ),
        (
            "attention_flop",
            Formula(
                "passes_per_step * flop_per_step * attention_share * size_ratio ** 2",
                "FLOP",
                "attention grows with their square",
            ),
        ),
        (
            "step_seconds",
            Formula(
                "linear_flop / (peak * matmul_compute) "
                "+ attention_flop / (attention_peak * attention_compute)",
                "s",
                "each at its measured part of the dense peak",
            ),
        ),
        (
            "decode_seconds",
            Formula(
                "flop_fixed * size_ratio / (peak * matmul_compute) "
                "+ pixels / 1e6 * decode_seconds_per_megapixel",
                "s",
                "text encoders, decoder and copies",
            ),
        ),
        (
            "image_seconds",
            Formula(
                "(start_seconds + batch * (denoising_steps * step_seconds + decode_seconds) "
                "/ compute_share) * measured_factor",
                "s",
                "a batch, as measured points near it correct it",
            ),
        ),
        (
            "weights_bytes",
            Formula(
                "ceil(denoiser_parameters * weight_bytes + other_parameters * 2)",
                "B",
                "every module stays resident; text encoders and decoder in bf16",
            ),
        ),
        (
            "activations_bytes",
            Formula(
                "ceil(batch * vae_bytes * largest_pixels / reference_pixels)",
                "B",
                "the decoder's peak for the largest image",
            ),
        ),
        ("overhead_bytes", Formula("context_bytes", "B", "CUDA context and allocator")),
        (
            "used_bytes",
            Formula(
                "weights_bytes + activations_bytes + overhead_bytes", "B", "at the worst moment"
            ),
        ),
        (
            "usable_bytes",
            Formula("floor(memory_bytes * 0.9)", "B", "the allocator keeps the rest in fragments"),
        ),
    )
)


@dataclass(frozen=True, slots=True)
class Layout:
    """A pipeline on a device at its batch, evaluated."""

    scope: Scope
    batch: int
    values: dict[str, float]
    basis: Basis
    factors: Factors


def candidates(demand: Demand, site: Site) -> list[tuple[GpuOffer, list[Candidate]]]:
    """Every device of every offer; one device runs one replica."""
    return [
        (offer, [c for d in devices(demand, offer, site) for c in _layouts(demand, d)])
        for offer in site.gpus
    ]


def _layouts(demand: Demand, device: Device) -> Iterator[Candidate]:
    gate = unsupported(device.gpu, demand.precision)
    if gate:
        yield refused(demand, device, 1, gate, passed=PRECISION)
        return
    scope, corrected = image_scope(demand, device)
    batch, values = _batch(demand, scope)
    if values["used_bytes"] > values["usable_bytes"]:
        used = values["used_bytes"]
        gate, flip = memory_gate(device, used, values["usable_bytes"], float(round(used / 0.9)))
        yield refused(demand, device, 1, gate, passed=MEMORY, flip=flip)
        return
    yield _candidate(
        demand, device, Layout(scope, batch, values, corrected.basis, corrected.factors)
    )


def _batch(demand: Demand, scope: Scope) -> tuple[int, dict[str, float]]:
    """A service makes one image at a time, for the least latency; a batch the most that fit."""
    chosen = demand.overrides.max_num_seqs
    batch = chosen or 1
    values = PIPELINE(floats(scope) | {"batch": float(batch)})
    if chosen is not None or demand.kind == "image service":
        return batch, values
    for larger in (2, 4, MOST_BATCH):
        more = PIPELINE(floats(scope) | {"batch": float(larger)})
        if more["used_bytes"] > more["usable_bytes"]:
            break
        batch, values = larger, more
    return batch, values


def image_scope(demand: Demand, device: Device) -> tuple[Scope, Correction]:
    """Model, device and measured fractions, without the batch."""
    model, gpu, given = demand.model, device.gpu, demand.given
    assert isinstance(model, Diffusion)
    denoisers = [m for m in model.modules if m.kind in ("transformer", "unet")]
    kind = denoisers[0].kind
    low = demand.precision not in ("bf16", "fp16")
    corrected = correction(model, kind, gpu, low=low)
    if device.partition is not None:
        corrected = replace(
            corrected, factors=measured.INTERVALS["extrapolated"], basis="extrapolated"
        )
    numbers = {
        "flop_per_step": model.flop_per_step,
        "flop_fixed": model.flop_fixed,
        "passes_per_step": model.passes_per_step,
        "reference_pixels": model.reference_pixels,
        "denoiser_parameters": sum(m.parameters for m in denoisers),
        "other_parameters": model.parameters - sum(m.parameters for m in denoisers),
    }
    units = {"flop_per_step": "FLOP", "flop_fixed": "FLOP"}
    scope = {
        name: Quantity(float(value), units.get(name, "1"), model.source)
        for name, value in numbers.items()
    }
    scope |= {
        "pixels": given["load.images.mean"],
        "largest_pixels": given["load.images.p95"],
        "denoising_steps": given["load.images.steps"],
        "compute_share": device.compute_share,
        "memory_bytes": device.memory_bytes,
        "weight_bytes": constant(WEIGHT_BYTES[demand.precision], "B", demand.precision),
        "vae_bytes": constant(3e9, "B", "decoder and activations of a 1024 x 1024 image"),
        "context_bytes": constant(1e9, "B", "CUDA context and allocator"),
        "attention_share": constant(measured.ATTENTION_SHARE[kind], "1", measured.SOURCE),
        "measured_factor": constant(corrected.factor, "1", f"measured points: {measured.SOURCE}"),
    }
    return scope | _speed(kind, gpu, demand.precision, low=low), corrected


def _speed(kind: str, gpu: Gpu, precision: str, *, low: bool) -> Scope:
    """The peaks, and the parts of them that a pipeline reaches. Attention of transformers stays in
    bf16; a UNet's is part of what was measured of the whole."""
    fact = peak(gpu, precision)
    assert fact is not None, "unsupported precisions are gated before"
    transformer = kind == "transformer"
    start = measured.DENOISER_START_SECONDS if transformer else 0.0
    decode = measured.DECODE_SECONDS if transformer else 0.0
    if transformer:
        matmul = share(measured.DENOISER_MATMUL, gpu) * (measured.DENOISER_LOW if low else 1.0)
        attention = share(measured.DENOISER_ATTENTION, gpu)
    elif low:
        matmul = attention = unet_part(gpu, fact.value)
    else:
        matmul = attention = measured.UNET_BF16
    return {
        "peak": quantity(fact),
        "attention_peak": quantity(gpu.peak_bf16 if transformer else fact),
        "matmul_compute": constant(matmul, "1", measured.SOURCE),
        "attention_compute": constant(attention, "1", measured.SOURCE),
        "start_seconds": constant(start, "s", measured.SOURCE),
        "decode_seconds_per_megapixel": constant(decode, "s", measured.SOURCE),
    }


def slowness(demand: Demand, layout: Layout) -> float:
    return at_confidence(layout.factors, demand.given["slo.confidence"].value)


def load_limit(demand: Demand, layout: Layout) -> float:
    """The part of its time that a replica may work: what the latency leaves (M/D/1), at most 95 %,
    and 80 % where no latency is asked for. 0 or less: not even an idle replica is fast enough."""
    seconds = layout.values["image_seconds"]
    latency = demand.value("slo.request_latency")
    if latency is None:
        return IDLE_ROOM.value
    room = latency / slowness(demand, layout) - seconds
    return min(0.95, 2 * room / (seconds + 2 * room)) if room > 0 else 0.0


def _candidate(demand: Demand, device: Device, layout: Layout) -> Candidate:
    seconds, slow = layout.values["image_seconds"], slowness(demand, layout)
    hours = 1.0
    if demand.kind == "image service":
        limit = load_limit(demand, layout)
        if limit <= 0:
            return _too_slow(demand, device, seconds * slow)
        needed = max(1, math.ceil(peak_rate(demand) * slow * seconds / limit - 1e-9))
    else:
        total = requests(demand) * seconds / layout.batch
        within = time_limit(demand)
        needed = 1 if within is None else max(1, math.ceil(total * slow / within - 1e-9))
        hours = weighed_hours(demand, total / (demand.overrides.replicas or needed))
    chosen = demand.overrides.replicas
    if chosen is not None and chosen < needed:
        few = count_gate("replicas", needed, chosen)
        return refused(demand, device, 1, (few,), passed=REPLICAS)
    candidate = Candidate(
        device=device,
        gpus=1,
        replicas=chosen or needed,
        isolation=demand.isolation,
        hours=hours,
        detail=layout,
    )
    gate, flip = nodes_gate(candidate)
    return stopped(candidate, gate, passed=NODES, flip=flip)


def _too_slow(demand: Demand, device: Device, seconds: float) -> Candidate:
    limit, needed = demand.given["slo.request_latency"].value, float(f"{seconds:.4g}")
    gate = Shortfall(
        resource="request_latency", requested=needed, used=0.0, capacity=limit, unit="s"
    )
    flip = Flip(quantity="slo.request_latency", now=limit, needed=needed, unit="s")
    return refused(demand, device, 1, (gate,), passed=OBJECTIVE, flip=flip)
