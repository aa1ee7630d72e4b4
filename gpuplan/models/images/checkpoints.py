"""Vision models by their names on the Hub: which of timm's networks each one is.

The network's dimensions are those of timm's profiles. Whole checkpoints with a tower for texts are
counted by `docs/model_profile.csv` of mlfoundations/open_clip@3b37473 (read 2026-11-23); SOURCE
says which commit of timm. All are published in 32 bits.
"""

from __future__ import annotations

from gpuplan.models.images.networks import SOURCE

TOWERS_SOURCE = "docs/model_profile.csv, mlfoundations/open_clip, read 2026-11-23"
VIT, DEIT, DINO = "ViTForImageClassification", "DeiTForImageClassification", "Dinov2Model"
CLIP, SIGLIP = "CLIPModel", "SiglipModel"
# Name: architecture, timm's network, pixels that the image processor gives it, and millions of
# parameters of both towers where there are two.
CHECKPOINTS: dict[str, tuple[str, str, int, float | None]] = {
    "facebook/convnext-base-224": (
        "ConvNextForImageClassification",
        "convnext_base",
        224,
        None,
    ),
    "facebook/convnext-large-224": (
        "ConvNextForImageClassification",
        "convnext_large",
        224,
        None,
    ),
    "facebook/deit-base-patch16-224": (DEIT, "deit_base_patch16_224", 224, None),
    "facebook/dinov2-base": (DINO, "vit_base_patch14_dinov2", 224, None),
    "facebook/dinov2-giant": (DINO, "vit_giant_patch14_dinov2", 224, None),
    "facebook/dinov2-large": (DINO, "vit_large_patch14_dinov2", 224, None),
    "google/siglip-base-patch16-224": (SIGLIP, "vit_base_patch16_siglip_224", 224, 203.16),
    "google/siglip-large-patch16-256": (SIGLIP, "vit_large_patch16_siglip_256", 256, 652.15),
    "google/siglip-large-patch16-384": (SIGLIP, "vit_large_patch16_siglip_384", 384, 652.48),
    "google/siglip-so400m-patch14-384": (SIGLIP, "vit_so400m_patch14_siglip_384", 384, 877.96),
    "google/vit-base-patch16-224": (VIT, "vit_base_patch16_224", 224, None),
    "google/vit-base-patch16-384": (VIT, "vit_base_patch16_384", 384, None),
    "google/vit-large-patch16-224": (VIT, "vit_large_patch16_224", 224, None),
    "google/vit-large-patch16-384": (VIT, "vit_large_patch16_384", 384, None),
    "laion/CLIP-ViT-H-14-laion2B-s32B-b79K": (CLIP, "vit_huge_patch14_clip_224", 224, 986.11),
    "microsoft/resnet-50": ("ResNetForImageClassification", "resnet50", 224, None),
    "microsoft/swin-base-patch4-window7-224": (
        "SwinForImageClassification",
        "swin_base_patch4_window7_224",
        224,
        None,
    ),
    "openai/clip-vit-base-patch16": (
        CLIP,
        "vit_base_patch16_clip_quickgelu_224",
        224,
        149.62,
    ),
    "openai/clip-vit-base-patch32": (
        CLIP,
        "vit_base_patch32_clip_quickgelu_224",
        224,
        151.28,
    ),
    "openai/clip-vit-large-patch14": (
        CLIP,
        "vit_large_patch14_clip_quickgelu_224",
        224,
        427.62,
    ),
    "openai/clip-vit-large-patch14-336": (
        CLIP,
        "vit_large_patch14_clip_quickgelu_336",
        336,
        427.94,
    ),
}
CITED = f"model: {SOURCE}"
BOTH_CITED = f"model: {SOURCE}; {TOWERS_SOURCE}"
