"""Constants of vision networks, written by bench/fitting/vision.py.

Fitted to the public points of timm's benchmark (huggingface/pytorch-image-models,
Apache-2.0): images per second of inference on four GPUs, of training on one. Compute
shares are of the catalogue's dense peak at its stated clock, which cards exceed.
"""

from __future__ import annotations

SOURCE = "fit of timm's benchmark, huggingface/pytorch-image-models (2026-11-21)"
# Structure: part of the GPU's compute share, traffic of activations, and its part where
# element-wise layers are fused by a compiler. Other structures: the geometric means.
STRUCTURES = {
    "vit": (0.6349, 2.714, 0.7872),
    "vit-rotary": (0.5843, 6.392, 0.3727),
    "resnet": (0.6516, 5.337, 0.6052),
    "depthwise": (0.2859, 5.139, 1.028),
    "convnext": (0.6743, 4.261, 0.7772),
    "convnext-v2": (0.6291, 10.66, 0.354),
    "swin": (0.6872, 5.576, 0.6554),
    "swin-v2": (0.6224, 6.587, 0.3887),
    "other": (0.5785, 5.464, 0.58),
}
# GPU and mode: compute share, traffic, compute share of fused attention.
GPUS = {
    ("rtx-3090-24gb", "eager"): (1.683, 1.423, 0.7555),
    ("rtx-4090-24gb", "eager"): (1.673, 1.347, 0.6909),
    ("rtx-5090-32gb", "eager"): (1.365, 1.575, 0.9304),
    ("rtx-pro-6000-max-q", "compiled"): (0.9031, 1.246, 0.6724),
    ("rtx-pro-6000-max-q", "eager"): (0.9651, 1.837, 0.6293),
}
# GPUs that were not measured, by line: data center GPUs sum in FP32 at full rate as
# professional cards do.
LINES: dict[tuple[str | None, str], tuple[float, float, float]] = {
    ("geforce", "eager"): (1.567, 1.445, 0.786),
    ("geforce", "compiled"): (1.567, 1.445, 0.786),
    ("professional", "eager"): (0.9651, 1.837, 0.6293),
    ("professional", "compiled"): (0.9031, 1.246, 0.6724),
    ("data-center", "eager"): (0.9651, 1.837, 0.6293),
    ("data-center", "compiled"): (0.9031, 1.246, 0.6724),
}
# Compute share of a patch embedding of 28 pixels or more.
STEM = {"rtx-3090-24gb": 0.1433}
STEM_OTHER = 0.4383
NARROW_SLOWDOWN = 0.04214
# Traffic of attention scores, whether a compiler fuses.
SCORE_TRAFFIC = {
    ("fused", False): 0.1419,
    ("fused", True): 0.232,
    ("windowed", False): 17.7,
    ("windowed", True): 8.026,
}
LAUNCH_SECONDS = 4.522e-06
# What blocks add to their traffic in eager mode; the last of PyTorch 2.9.
QUICK_GELU = 0.4371
LAYER_SCALE = 0.1979
PARALLEL_BLOCKS = 0.5632
NO_CLASS_TOKEN = 0.5177
TRAINING = {
    "train_matmul": 2.915,
    "train_traffic": 4.265,
    "train_score_traffic": 50.53,
    "update_bytes": 34.01,
}
# 90 % of the errors on a GPU or a structure that was left out of the fit.
UNSEEN_FACTORS = (0.6823, 1.609)
