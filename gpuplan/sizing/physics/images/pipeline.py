"""One replica of a diffusion pipeline: its time for an image, and its memory."""

from __future__ import annotations

from dataclasses import dataclass, replace

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Diffusion
from gpuplan.plan.model import record
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, floats, sheet
from gpuplan.sizing.hardware.devices import Device, quantity
from gpuplan.sizing.hardware.efficiency import peak
from gpuplan.sizing.model.checkpoints import WEIGHT_BYTES
from gpuplan.sizing.physics.images.denoising import share
from gpuplan.sizing.physics.images.speed import Correction, correction, denoisers, is_low, unet_part

USABLE = constant(0.9, "1", "the allocator keeps the rest in fragments")
PIPELINE = sheet("""
    size_ratio: 1 = pixels / reference_pixels  # the mean image over the reference one
    linear_flop: FLOP = passes_per_step * flop_per_step * (1 - attention_share) * size_ratio
        # a step's weights and convolutions grow with the pixels
    attention_flop: FLOP = passes_per_step * flop_per_step * attention_share * size_ratio ** 2
        # attention grows with their square
    step_seconds: s = linear_flop / (peak * matmul_compute)
        + attention_flop / (attention_peak * attention_compute)
        # each at its measured part of the dense peak
    decode_seconds: s = flop_fixed * size_ratio / (peak * matmul_compute)
        + pixels / 1e6 * decode_seconds_per_megapixel  # text encoders, decoder and copies
    image_seconds: s = (start_seconds + batch * (denoising_steps * step_seconds + decode_seconds)
        / compute_share) * measured_factor  # a batch, as measured points near it correct it
    weights_bytes: B = ceil(denoiser_parameters * weight_bytes + other_parameters * bf16_bytes)
        # every module stays resident; text encoders and decoder in bf16
    activations_bytes: B = ceil(batch * vae_bytes * largest_pixels / reference_pixels)
        # the decoder's peak for the largest image
    overhead_bytes: B = context_bytes  # CUDA context and allocator
    used_bytes: B = weights_bytes + activations_bytes + overhead_bytes  # at the worst moment
    usable_bytes: B = floor(memory_bytes * usable_fraction)  # what tensors may fill
""")


@record
class Images:
    """Pixels of the mean and of the largest image, and denoising steps."""

    pixels: Quantity
    largest_pixels: Quantity
    denoising_steps: Quantity


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A pipeline on a device without its batch; `corrected` is what measured points say of it."""

    scope: Scope
    corrected: Correction

    def at(self, batch: int) -> dict[str, float]:
        """Time and memory of a batch."""
        return PIPELINE(floats(self.scope) | {"batch": float(batch)})


def pipeline(model: Diffusion, device: Device, precision: str, images: Images) -> Pipeline:
    """Model, device and measured fractions."""
    gpu = device.gpu
    kind, low = denoisers(model)[0].kind, is_low(precision)
    corrected = correction(model, kind, gpu, low=low)
    if device.partition is not None:
        corrected = replace(
            corrected, factors=measured.INTERVALS["extrapolated"], basis="extrapolated"
        )
    parameters = sum(m.parameters for m in denoisers(model))
    numbers = (
        ("flop_per_step", model.flop_per_step, "FLOP"),
        ("flop_fixed", model.flop_fixed, "FLOP"),
        ("passes_per_step", model.passes_per_step, "1"),
        ("reference_pixels", model.reference_pixels, "1"),
        ("denoiser_parameters", parameters, "1"),
        ("other_parameters", model.parameters - parameters, "1"),
    )
    scope = {n: Quantity(float(value), unit, model.source) for n, value, unit in numbers}
    scope |= {
        "pixels": images.pixels,
        "largest_pixels": images.largest_pixels,
        "denoising_steps": images.denoising_steps,
        "compute_share": device.compute_share,
        "memory_bytes": device.memory_bytes,
        "usable_fraction": USABLE,
        "weight_bytes": constant(WEIGHT_BYTES[precision], "B", precision),
        "vae_bytes": constant(3e9, "B", "decoder and activations of a 1024 x 1024 image"),
        "context_bytes": constant(1e9, "B", "CUDA context and allocator"),
        "attention_share": constant(measured.ATTENTION_SHARE[kind], "1", measured.SOURCE),
        "measured_factor": constant(corrected.factor, "1", f"measured points: {measured.SOURCE}"),
    }
    return Pipeline(scope | _speed(kind, gpu, precision, low=low), corrected)


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
