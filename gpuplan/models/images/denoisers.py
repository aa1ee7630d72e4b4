"""Diffusion transformers of images and videos: what a denoising step multiplies.

Dimensions are the defaults of the classes in huggingface/diffusers `src/diffusers/models/
transformers` and the sizes in `scripts/convert_*` (58eb52c0, 2026-08-23); of Wan 1.3B and
Step-Video their `config.json`. A block multiplies 4 h² (attention) + 8 h² (MLP) for each token, and
2 h² more with cross-attention; the modulation of a block is not per token.
"""

from __future__ import annotations

import re

from gpuplan.plan.records import record

SOURCE = "huggingface/diffusers, src/diffusers/models/transformers (2026-08-23)"


@record
class Denoiser:
    """`token_weights` multiply every token; `text_tokens` attend jointly with those of the image. A
    token covers `pixel_stride`² pixels and `frame_stride` frames (0: images only). `passes` a step:
    2 with classifier-free guidance."""

    identifier: str
    width: int
    layers: int
    token_weights: float
    text_tokens: int
    pixel_stride: int
    frame_stride: int
    passes: int

    def tokens(self, width: int, height: int, frames: int) -> int:
        """Of an image or a video; the first frame has a latent of its own."""
        latents = 1 if frames <= 1 else 1 + (frames - 1) // self.frame_stride
        if self.identifier == "step-video":  # 17 frames are 3 latents
            latents = -(-frames * 3 // 17) if frames > 1 else 1
        across, down = -(-width // self.pixel_stride), -(-height // self.pixel_stride)
        return latents * across * down


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


def _joint(width: int, layers: int) -> float:
    return 12.0 * width**2 * layers


def _crossed(width: int, layers: int, mlp: int) -> float:
    """Self- and cross-attention, and an MLP of two matrices."""
    return (6.0 * width**2 + 2 * width * mlp) * layers


# Shape: text tokens, pixels and frames of a token.
DENOISERS = {
    d.identifier: d
    for d in (
        _denoiser("flux.1", (3072, 57), _joint(3072, 57), (512, 16, 0), 1),
        _denoiser("flux.2-dev", (6144, 56), 13.0 * 6144**2 * 56, (512, 16, 0), 1),
        _denoiser("sd3-medium", (1536, 24), _joint(1536, 24), (333, 16, 0), 2),
        _denoiser("sd3.5-large", (2432, 38), _joint(2432, 38), (333, 16, 0), 2),
        _denoiser("pixart", (1152, 28), _crossed(1152, 28, 4608), (0, 16, 0), 2),
        _denoiser("hunyuan-dit", (1408, 40), _crossed(1408, 40, 6144) + 38e6, (0, 16, 0), 2),
        _denoiser("qwen-image", (3072, 60), _joint(3072, 60), (0, 16, 0), 2),
        _denoiser("hunyuan-video", (3072, 60), _joint(3072, 60), (256, 16, 4), 1),
        _denoiser("cogvideox-2b", (1920, 30), _joint(1920, 30), (226, 16, 4), 2),
        _denoiser("cogvideox-5b", (3072, 42), _joint(3072, 42), (226, 16, 4), 2),
        _denoiser("cogvideox1.5-5b", (3072, 42), _joint(3072, 42), (226, 16, 8), 2),
        _denoiser("mochi-1", (3072, 48), _joint(3072, 48), (256, 16, 6), 2),
        _denoiser("wan-14b", (5120, 40), _crossed(5120, 40, 13824), (0, 16, 4), 2),
        _denoiser("wan-1.3b", (1536, 30), _crossed(1536, 30, 8960), (0, 16, 4), 2),
        _denoiser("step-video", (6144, 48), _crossed(6144, 48, 24576), (0, 16, 8), 2),
        _denoiser("ltx-video", (2048, 28), _crossed(2048, 28, 8192), (0, 32, 8), 2),
    )
}
# What measurements call them, without signs between the words.
NAMES = (
    (r"flux2", "flux.2-dev"),
    (r"flux", "flux.1"),
    (r"(sd|stablediffusion)35large", "sd3.5-large"),
    (r"(sd|stablediffusion)35", ""),
    (r"(sd|stablediffusion)3", "sd3-medium"),
    (r"pixart", "pixart"),
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
    """The transformer of a pipeline's name, as hubs and benchmarks write it."""
    plain = re.sub(r"[^a-z0-9]", "", name.rsplit("/", 1)[-1].lower())
    identifier = next((known for pattern, known in NAMES if re.match(pattern, plain)), "")
    return DENOISERS.get(identifier)
