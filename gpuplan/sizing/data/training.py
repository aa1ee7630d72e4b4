"""Training: bytes of states and frameworks, and how far predictions of a planned run are trusted.

The constants of its speed are in `training_speed`.
"""

from __future__ import annotations

MEMORY_SOURCE = "fitted on 124 public points of training memory (2026-11-21)"
CALIBRATED_GPUS = (
    "a100-sxm-40gb",
    "a100-sxm-80gb",
    "h100-sxm-80gb",
    "h200-sxm-141gb",
    "b200-sxm-180gb",
    "b300-sxm-288gb",
    "gb200-186gb",
    "gb300-288gb",
)
# Bytes of a parameter beside its two of bf16 weight: gradients, optimizer states.
OPTIMIZERS: dict[str, tuple[float, float]] = {
    "adamw": (4.0, 12.0),
    "adamw-8bit": (2.0, 2.0),
    "adamw-bf16": (2.0, 4.0),
}
# Bytes of the loss a token and vocabulary entry; fixed bytes; DeepSpeed's buffers.
FRAMEWORKS: dict[str, dict[str, float]] = {
    "trainer": {
        "loss_bytes": 16.0,
        "fixed_bytes": 2.1e9,
        "unpacked_copies": 13.8,
        "deepspeed_bytes": 13.0e9,
    },
    "bare": {
        "loss_bytes": 9.4,
        "fixed_bytes": 1.9e9,
        "unpacked_copies": 1.8,
        "deepspeed_bytes": 0.0,
    },
}
FRAMEWORK_OF = {"axolotl": "trainer"}
# 90 % of the measured step times, as factors on the prediction: 177 public data-parallel points,
# both ends widened by 1.24 in the logarithm, as models that were left out of the fit ask.
# Extrapolated: architectures without points; full runs of the trainer on several GPUs, which
# nobody published: between a bare loop and what its adapters lose.
INTERVALS: dict[str, tuple[float, float]] = {
    "calibrated": (0.87, 1.23),
    "extrapolated": (0.7, 1.6),
    "parallel": (0.85, 1.81),
    "parallel adapters": (0.55, 1.25),
}
