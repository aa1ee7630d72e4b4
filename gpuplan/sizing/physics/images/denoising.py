"""Time of a denoised image or video on one or several GPUs with sequence parallelism."""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.catalog.model import Gpu
from gpuplan.models.images.denoisers import Denoiser
from gpuplan.sizing.data import images as measured
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.hardware.measured import NotMeasured, fitted

DENOISING = Sheet(
    (
        (
            "linear_flop",
            Formula("2 * token_weights * (tokens + text_tokens)", "FLOP", "weights, one pass"),
        ),
        (
            "attention_flop",
            Formula(
                "4 * layers * (tokens + text_tokens) ** 2 * width",
                "FLOP",
                "scores and their sum, one pass; every token attends to every other",
            ),
        ),
        (
            "pass_seconds",
            Formula(
                "(linear_flop / matmul_compute + attention_flop / attention_compute) "
                "/ (peak * gpus)",
                "s",
                "each at its measured part of the dense peak",
            ),
        ),
        (
            "elementwise_seconds",
            Formula(
                "layers * tokens * width * elementwise_bytes / (bandwidth * gpus)",
                "s",
                "norms, gates and rotary embeddings, where no compiler fuses them",
            ),
        ),
        (
            "exchange_seconds",
            Formula(
                "layers * (8 * tokens * width / gpus * (gpus - 1) / gpus / link_bytes_per_s "
                "+ (ring - 1) * ring_step_seconds)",
                "s",
                "queries, keys, values and outputs of a layer go to all GPUs (Ulysses), or keys "
                "and values around the ring",
            ),
        ),
        (
            "serial_seconds",
            Formula(
                "start_seconds + megapixels * (decode_seconds + decode_flop / peak)",
                "s",
                "text encoders, decoder and copies run on one GPU",
            ),
        ),
        (
            "denoise_seconds",
            Formula(
                "denoising_steps * passes * (pass_seconds + elementwise_seconds "
                "+ exchange_seconds) + serial_seconds",
                "s",
                "one image or video",
            ),
        ),
        (
            "least_seconds",
            Formula(
                "denoising_steps * passes * (linear_flop + attention_flop) / (peak * gpus)",
                "s",
                "at the peak",
            ),
        ),
    )
)


def denoising_scope(
    denoiser: Denoiser, gpu: Gpu, size: tuple[int, int, int], gpus: int
) -> dict[str, float]:
    """Numbers of a denoiser on GPUs, for an image or a video of width, height and frames."""
    width, height, frames = size
    return {
        "token_weights": denoiser.token_weights,
        "tokens": float(denoiser.tokens(width, height, frames)),
        "text_tokens": float(denoiser.text_tokens),
        "layers": float(denoiser.layers),
        "width": float(denoiser.width),
        "passes": float(denoiser.passes),
        "elementwise_bytes": measured.ELEMENTWISE_BYTES,
        "bandwidth": gpu.memory_bytes_per_s.value,
        "peak": gpu.peak_bf16.value,
        "gpus": float(gpus),
        "matmul_compute": share(measured.DENOISER_MATMUL, gpu),
        "attention_compute": share(measured.DENOISER_ATTENTION, gpu),
        "link_bytes_per_s": gpu.link_bytes_per_s.value * measured.EXCHANGE_SHARE,
        "ring": 1.0,
        "ring_step_seconds": measured.RING_STEP_SECONDS,
        "start_seconds": measured.DENOISER_START_SECONDS,
        "megapixels": width * height * max(frames, 1) / 1e6,
        "decode_seconds": measured.DECODE_SECONDS,
        "decode_flop": measured.DECODE_FLOP,
    }


def share(table: Mapping[str, float], gpu: Gpu) -> float:
    """Of the GPU or its architecture, else of its nearest stand-in. Raises `NotMeasured`."""
    part = fitted(gpu, "images", table)
    if part is None:
        raise NotMeasured(gpu, "images")
    return part
