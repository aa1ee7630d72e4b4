"""Constants of image generation: fractions of the dense peak that a whole pipeline reaches.

Transformers: FLUX.1-dev in bf16 on one H100 at 28 steps, xDiT with torch.compile, 4.3 s. UNets:
medians of SDXL in fp8 or int8, MLPerf Inference v4.1 and v5.1 offline. Other precisions are scaled
by what matrix products reach in them (bf16 .80, fp8 .55 on H100).
"""

from __future__ import annotations

SOURCE = "FLUX.1 of xDiT and SDXL of MLPerf Inference v4.1 and v5.1 (2026-11-21)"
UNET_LOW = {
    "h100-sxm-80gb": 0.253,
    "h200-sxm-141gb": 0.270,
    "b200-sxm-180gb": 0.219,
    "l40s": 0.229,
    "h100-pcie-80gb": 0.199,
    "h200-nvl-141gb": 0.306,
    "rtx-pro-6000-server": 0.362,
}
UNET_LOW_OTHER = 0.22  # near the lower end of the types measured
UNET_BF16 = 0.36
TRANSFORMER_BF16 = 0.60
TRANSFORMER_LOW = 0.41
TRANSFORMER_START_SECONDS = 0.8
# Part of a step's operations that is attention, at the reference size: it grows with the square of
# the pixels. FLUX.1: 14.9 of 74.4 TFLOP; SDXL: 0.39 of 3.38 TMAC.
ATTENTION_SHARE = {"transformer": 0.20, "unet": 0.115}
# Calibrated: UNets in fp8 or int8 on GPU types with three systems of MLPerf or more.
INTERVALS = {"calibrated": (0.85, 1.25), "extrapolated": (0.7, 1.7)}
CALIBRATED_GPUS = ("h100-sxm-80gb", "h200-sxm-141gb", "b200-sxm-180gb", "l40s")
