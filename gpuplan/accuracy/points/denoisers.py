"""Diffusion transformers that no bundled pipeline has, and what measurements call all of them.

Dimensions are the defaults of the classes in huggingface/diffusers `src/diffusers/models/
transformers` and the sizes in `scripts/convert_*` (58eb52c0, 2026-08-23); of Wan 1.3B and
Step-Video their `config.json`.
"""

from __future__ import annotations

import re

from gpuplan.models.images.transformers import crossed_weights, joint_weights
from gpuplan.models.load import bundled
from gpuplan.models.model import Denoiser, Diffusion

SOURCE = "huggingface/diffusers, src/diffusers/models/transformers (2026-08-23)"


def _denoiser(
    name: str,
    dimensions: tuple[int, int],
    weights: float,
    shape: tuple[int, int, int],
    passes: int,
) -> Denoiser:
    (width, layers), (text, pixels, frames) = dimensions, shape
    return Denoiser(
        identifier=name,
        width=width,
        layers=layers,
        token_weights=weights,
        text_tokens=text,
        pixel_stride=pixels,
        frame_stride=frames,
        passes=passes,
    )


# Shape: text tokens, pixels and frames of a token.
DENOISERS = {
    d.identifier: d
    for d in (
        _denoiser("flux.2-dev", (6144, 56), 13.0 * 6144**2 * 56, (512, 16, 0), 1),
        _denoiser("hunyuan-dit", (1408, 40), crossed_weights(1408, 40, 6144) + 38e6, (0, 16, 0), 2),
        _denoiser("qwen-image", (3072, 60), joint_weights(3072, 60), (0, 16, 0), 2),
        _denoiser("hunyuan-video", (3072, 60), joint_weights(3072, 60), (256, 16, 4), 1),
        _denoiser("cogvideox-2b", (1920, 30), joint_weights(1920, 30), (226, 16, 4), 2),
        _denoiser("cogvideox-5b", (3072, 42), joint_weights(3072, 42), (226, 16, 4), 2),
        _denoiser("cogvideox1.5-5b", (3072, 42), joint_weights(3072, 42), (226, 16, 8), 2),
        _denoiser("mochi-1", (3072, 48), joint_weights(3072, 48), (256, 16, 6), 2),
        _denoiser("wan-14b", (5120, 40), crossed_weights(5120, 40, 13824), (0, 16, 4), 2),
        _denoiser("wan-1.3b", (1536, 30), crossed_weights(1536, 30, 8960), (0, 16, 4), 2),
        _denoiser("step-video", (6144, 48), crossed_weights(6144, 48, 24576), (0, 16, 8), 2),
        _denoiser("ltx-video", (2048, 28), crossed_weights(2048, 28, 8192), (0, 32, 8), 2),
    )
}
# What measurements call them, without signs between the words; of some, the bundled pipeline.
NAMES = (
    (r"flux2", "flux.2-dev"),
    (r"flux1?schnell", "FLUX.1-schnell"),
    (r"flux", "FLUX.1-dev"),
    (r"(sd|stablediffusion)35large", "stable-diffusion-3.5-large"),
    (r"(sd|stablediffusion)35", ""),
    (r"(sd|stablediffusion)3", "stable-diffusion-3-medium-diffusers"),
    (r"pixart", "PixArt-Sigma-XL-2-1024-MS"),
    (r"hunyuanvideo15", ""),
    (r"hunyuanvideo", "hunyuan-video"),
    (r"hunyuan(image|3d)", ""),
    (r"hunyuan", "hunyuan-dit"),
    (r"qwenimage", "qwen-image"),
    (r"cogvideox?15", "cogvideox1.5-5b"),
    (r"cogvideox?2b", "cogvideox-2b"),
    (r"cogvideo|consisid", "cogvideox-5b"),
    (r"mochi", "mochi-1"),
    (r"wan.*13b", "wan-1.3b"),
    (r"wan.*5b", ""),
    (r"wan2?\d?(t2v|i2v)?\w*14b", "wan-14b"),
    (r"stepvideo", "step-video"),
    (r"ltxvideo(?!.*13b)", "ltx-video"),
)


def find_denoiser(name: str) -> Denoiser | None:
    """A transformer by a name as hubs and benchmarks write it."""
    plain = re.sub(r"[^a-z0-9]", "", name.rsplit("/", 1)[-1].lower())
    known = next((known for pattern, known in NAMES if re.match(pattern, plain)), "")
    pipeline = bundled(known)
    denoiser = pipeline.denoiser if isinstance(pipeline, Diffusion) else None
    return denoiser if isinstance(denoiser, Denoiser) else DENOISERS.get(known)
