"""Modules of diffusion pipelines: parameters as diffusers builds them, refusals by name.

Totals: diffusers 0.42.1 on PyTorch's meta device, 2026-11-21.
"""

from __future__ import annotations

from typing import Any

import pytest

from gpuplan.errors import Rejected
from gpuplan.models.images.pipelines import MODULES, module_parameters
from gpuplan.models.load import bundled
from gpuplan.models.model import Diffusion
from gpuplan.source import Origin

FLUX = {
    "_class_name": "FluxTransformer2DModel",
    "num_layers": 19,
    "num_single_layers": 38,
    "attention_head_dim": 128,
    "num_attention_heads": 24,
    "in_channels": 64,
    "joint_attention_dim": 4096,
    "pooled_projection_dim": 768,
}
SD3 = {
    "_class_name": "SD3Transformer2DModel",
    "num_layers": 24,
    "num_attention_heads": 24,
    "attention_head_dim": 64,
    "in_channels": 16,
    "out_channels": 16,
    "joint_attention_dim": 4096,
    "pooled_projection_dim": 2048,
    "patch_size": 2,
}
PIXART = {
    "_class_name": "PixArtTransformer2DModel",
    "num_layers": 28,
    "num_attention_heads": 16,
    "attention_head_dim": 72,
    "in_channels": 4,
    "out_channels": 8,
    "patch_size": 2,
    "sample_size": 128,
    "caption_channels": 4096,
}
WAN = {
    "_class_name": "WanTransformer3DModel",
    "num_layers": 40,
    "num_attention_heads": 40,
    "attention_head_dim": 128,
    "ffn_dim": 13824,
    "in_channels": 16,
    "out_channels": 16,
    "patch_size": [1, 2, 2],
    "text_dim": 4096,
}
HUNYUAN = {
    "_class_name": "HunyuanVideoTransformer3DModel",
    "num_layers": 20,
    "num_single_layers": 40,
    "num_refiner_layers": 2,
    "num_attention_heads": 24,
    "attention_head_dim": 128,
    "in_channels": 16,
    "out_channels": 16,
    "patch_size": 2,
    "patch_size_t": 1,
    "text_embed_dim": 4096,
    "pooled_projection_dim": 768,
    "guidance_embeds": True,
}
QWEN = {
    "_class_name": "QwenImageTransformer2DModel",
    "num_layers": 60,
    "num_attention_heads": 24,
    "attention_head_dim": 128,
    "in_channels": 64,
    "out_channels": 16,
    "patch_size": 2,
    "joint_attention_dim": 3584,
}
UNET = {
    "_class_name": "UNet2DConditionModel",
    "in_channels": 4,
    "out_channels": 4,
    "block_out_channels": [320, 640, 1280, 1280],
    "down_block_types": [*["CrossAttnDownBlock2D"] * 3, "DownBlock2D"],
    "layers_per_block": 2,
    "cross_attention_dim": 768,
}
SDXL = UNET | {
    "block_out_channels": [320, 640, 1280],
    "down_block_types": ["DownBlock2D", *["CrossAttnDownBlock2D"] * 2],
    "cross_attention_dim": 2048,
    "transformer_layers_per_block": [1, 2, 10],
    "projection_class_embeddings_input_dim": 2816,
}
VAE = {
    "_class_name": "AutoencoderKL",
    "block_out_channels": [128, 256, 512, 512],
    "layers_per_block": 2,
    "latent_channels": 4,
}
PLAIN = {"use_quant_conv": False, "use_post_quant_conv": False}
COUNTS: list[tuple[dict[str, Any], int]] = [
    (FLUX | {"guidance_embeds": True}, 11_901_408_320),
    (FLUX, 11_891_178_560),
    (SD3, 2_028_328_000),
    (SD3 | {"num_layers": 38, "num_attention_heads": 38, "qk_norm": "rms_norm"}, 8_056_627_520),
    (PIXART, 611_349_152),
    (PIXART | {"sample_size": 64}, 610_856_096),
    (WAN, 14_288_491_584),
    (WAN | {"num_layers": 30, "num_attention_heads": 12, "ffn_dim": 8960}, 1_418_996_800),
    (HUNYUAN, 12_821_012_544),
    (QWEN, 20_430_401_088),
    (UNET, 859_520_964),
    (UNET | {"cross_attention_dim": 1024}, 865_910_724),
    (SDXL, 2_567_463_684),
    (VAE, 83_653_863),
    (VAE | {"latent_channels": 16} | PLAIN, 83_819_683),
]
ORIGIN = Origin("config.json")


@pytest.mark.parametrize(
    ("config", "total"), COUNTS, ids=[f"{i}-{c['_class_name']}" for i, (c, _) in enumerate(COUNTS)]
)
def test_modules_have_the_parameters_of_diffusers(config: dict[str, Any], total: int) -> None:
    assert module_parameters(config, ORIGIN) == total


def test_every_class_of_modules_is_counted() -> None:
    assert {config["_class_name"] for config, _ in COUNTS} == set(MODULES)


@pytest.mark.parametrize("name", ["UNet3DConditionModel", None, 7])
def test_a_class_that_is_not_known_is_refused_by_name(name: object) -> None:
    with pytest.raises(Rejected) as caught:
        module_parameters({"_class_name": name}, ORIGIN)
    (problem,) = caught.value.diagnostics
    assert problem.rule == "GP011"
    assert repr(str(name)) in problem.message


@pytest.mark.parametrize(
    ("config", "field"),
    [
        (SD3 | {"dual_attention_layers": [0, 1]}, "dual_attention_layers"),
        (WAN | {"image_dim": 1280}, "image_dim"),
        ({k: v for k, v in FLUX.items() if k != "num_single_layers"}, "num_single_layers"),
        (UNET | {"block_out_channels": "wide"}, "block_out_channels"),
    ],
)
def test_what_cannot_be_counted_is_named(config: dict[str, Any], field: str) -> None:
    with pytest.raises(Rejected, match=field):
        module_parameters(config, ORIGIN)


@pytest.mark.parametrize(
    ("name", "kind", "parameters"),
    [
        ("stable-diffusion-v1-5", "unet", 859_520_964),
        ("stable-diffusion-2-1", "text_encoder", 340_387_840),
        ("stable-diffusion-3-medium-diffusers", "transformer", 2_028_328_000),
        ("stable-diffusion-3.5-large", "transformer", 8_056_627_520),
        ("PixArt-Sigma-XL-2-1024-MS", "text_encoder", 4_762_310_656),
    ],
)
def test_bundled_pipelines_are_counted_from_their_configurations(
    name: str, kind: str, parameters: int
) -> None:
    found = bundled(name)
    assert isinstance(found, Diffusion)
    assert sum(m.parameters for m in found.modules if m.kind == kind) == parameters
