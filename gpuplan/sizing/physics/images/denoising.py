"""Time of an image by a diffusion pipeline on one GPU: transformers from their tokens, UNets from
counted operations, each at the part of the peak that was measured."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.catalog.model import Fact, Gpu
from gpuplan.models.model import Denoiser, Unet
from gpuplan.plan.model import Shortfall, record
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.devices import Device, quantity
from gpuplan.sizing.hardware.efficiency import peak
from gpuplan.sizing.hardware.measured import NotMeasured, fitted, lacking

TRANSFORMER = sheet("""
    tokens: 1 = pixels / token_pixels  # patches of the mean image
    linear_flop: FLOP = passes * mac_flop * token_weights * (tokens + text_tokens)
        # a step takes every token through the weights
    attention_flop: FLOP = passes * 2 * mac_flop * layers * width * (tokens + text_tokens) ** 2
        # scores and their sums: every token attends to every other
    elementwise_seconds: s = passes * layers * tokens * width * elementwise_bytes / bandwidth
        # norms, gates and rotary embeddings, where no compiler fuses them
    step_seconds: s = linear_flop / (peak * matmul_compute)
        + attention_flop / (bf16_peak * attention_compute) + elementwise_seconds
        # each at its measured part of the dense peak
    decode_seconds: s = pixels * (pixel_decode_seconds + pixel_decode_flop / bf16_peak)
        # the decoder and copies of an image
""")
UNET = sheet("""
    size_ratio: 1 = pixels / reference_pixels  # the mean image over the one that was counted
    linear_flop: FLOP = passes * (pass_flop - pass_attention_flop) * size_ratio
        # a step's convolutions and matrix products grow with the pixels
    attention_flop: FLOP = passes * pass_attention_flop * size_ratio ** 2
        # self-attention grows with their square
    step_seconds: s = (linear_flop + attention_flop) / (peak * pipeline_compute)
        # at the part of the dense peak that whole pipelines were measured at
    decode_seconds: s = decode_flop * size_ratio / (peak * pipeline_compute)
        # text encoders and decoder of an image
""")
BATCH = sheet("""
    formula_seconds: s = start_seconds
        + batch * (denoising_steps * step_seconds + decode_seconds) / compute_share
        # a batch, by the formulas alone
    least_seconds: s = batch * denoising_steps * (linear_flop + attention_flop)
        / (peak * compute_share)  # at the dense peak: no correction goes below
""")


@record
class Images:
    """Pixels of the mean and of the largest image, and denoising steps; of videos those of all
    `frames`, and the `memory` that one takes above the weights."""

    pixels: Quantity
    largest_pixels: Quantity
    denoising_steps: Quantity
    frames: int = 1
    memory: Quantity | None = None


@record
class Runtime:
    """What a pipeline runs on, in which precision its denoiser computes, and by which engine."""

    device: Device
    precision: str
    engine: str


def is_low(precision: str) -> bool:
    """Whether a pipeline computes in 8 bits or fewer."""
    return precision not in ("bf16", "fp16")


def unmeasured(denoiser: Denoiser | Unet, gpu: Gpu, precision: str) -> tuple[Shortfall, ...]:
    """The gate that a GPU fails for which no measured pipelines of the kind stand. What UNets reach
    in 16 bits was measured on none: it is one number."""
    if isinstance(denoiser, Denoiser):
        table = measured.DENOISER_MATMUL
    elif is_low(precision):
        table = measured.UNET_LOW
    else:
        return ()
    return () if fitted(gpu, "images", table) else lacking("images")


def image_scope(denoiser: Denoiser | Unet, runtime: Runtime, images: Images, cited: str) -> Scope:
    """Numbers of a denoiser for `TRANSFORMER` or `UNET`, and `BATCH`; dimensions are `cited`.
    Raises `NotMeasured`."""
    device, precision = runtime.device, runtime.precision
    fact = peak(device.gpu, precision)
    assert fact is not None, "unsupported precisions are gated before"
    scope = {
        "pixels": images.pixels,
        "denoising_steps": images.denoising_steps,
        "compute_share": device.compute_share,
        "peak": quantity(fact),
    }
    if isinstance(denoiser, Denoiser):
        scope |= _transformer(device.gpu, precision, runtime.engine)
    else:
        scope |= _unet(device.gpu, fact, precision)
    return scope | _dimensions(denoiser, images.frames, cited)


def _dimensions(denoiser: Denoiser | Unet, frames: int, cited: str) -> Scope:
    facts: tuple[tuple[str, float, str], ...]
    if isinstance(denoiser, Unet):
        facts = (
            ("pass_flop", denoiser.pass_flop, "FLOP"),
            ("pass_attention_flop", denoiser.attention_flop, "FLOP"),
            ("decode_flop", denoiser.decode_flop, "FLOP"),
            ("reference_pixels", denoiser.reference_pixels, "1"),
            ("passes", denoiser.passes, "1"),
        )
    else:
        facts = (
            ("token_pixels", denoiser.token_pixels(frames), "1"),
            ("token_weights", denoiser.token_weights, "1"),
            ("text_tokens", denoiser.text_tokens, "1"),
            ("layers", denoiser.layers, "1"),
            ("width", denoiser.width, "1"),
            ("passes", denoiser.passes, "1"),
        )
    return {name: Quantity(float(value), unit, cited) for name, value, unit in facts}


def _transformer(gpu: Gpu, precision: str, engine: str) -> Scope:
    """In low precision attention stays in bf16, as the decoder does."""
    low = measured.DENOISER_LOW if is_low(precision) else 1.0
    fusing = measured.FUSING.get(engine)
    cited = fusing or f"as eager PyTorch in training: {engine} is not known to fuse"
    return {
        "bf16_peak": quantity(gpu.peak_bf16),
        "bandwidth": quantity(gpu.memory_bytes_per_s),
        "matmul_compute": _part(share(measured.DENOISER_MATMUL, gpu) * low),
        "attention_compute": _part(share(measured.DENOISER_ATTENTION, gpu)),
        "elementwise_bytes": constant(0.0 if fusing else measured.ELEMENTWISE_BYTES, "B", cited),
        "start_seconds": constant(measured.DENOISER_START_SECONDS, "s", measured.SOURCE),
        "pixel_decode_seconds": constant(measured.PIXEL_DECODE_SECONDS, "s", measured.SOURCE),
        "pixel_decode_flop": constant(measured.PIXEL_DECODE_FLOP, "FLOP", measured.SOURCE),
    }


def _unet(gpu: Gpu, fact: Fact, precision: str) -> Scope:
    part = unet_part(gpu, fact.value) if is_low(precision) else measured.UNET_BF16
    start = constant(0.0, "s", "within what was measured of whole pipelines")
    return {"pipeline_compute": _part(part), "start_seconds": start}


def _part(value: float) -> Quantity:
    return constant(value, "1", measured.SOURCE)


def share(table: Mapping[str, float], gpu: Gpu) -> float:
    """Of the GPU or its architecture, else of its nearest stand-in. Raises `NotMeasured`."""
    part = fitted(gpu, "images", table)
    if part is None:
        raise NotMeasured(gpu, "images")
    return part


def unet_part(gpu: Gpu, low_peak: float) -> float:
    """Part of the low-precision peak that SDXL reaches on a GPU; small cards are held by their
    power before it. Raises `NotMeasured`."""
    part = share(measured.UNET_LOW, gpu)
    a_joule = measured.UNET_FLOP_PER_JOULE.get(gpu.architecture)
    if gpu.identifier in measured.UNET_LOW or a_joule is None:
        return part
    return min(part, a_joule * gpu.watts.value / low_peak)
