"""Constants of image and video generation, fitted by bench/diffusion.py.

UNets: SDXL in fp8 or int8, MLPerf Inference v4.1 and v5.1. Transformers: FLUX.1-dev at 28 steps on
one to four H100 (torch.compile) and HunyuanVideo at 50 steps on one to eight H20, by xDiT.
"""

from __future__ import annotations

SOURCE = "FLUX.1 and HunyuanVideo of xDiT, SDXL of MLPerf Inference v4.1 and v5.1 (2026-11-21)"
# Part of the dense fp8 (else int8) peak that a whole SDXL pipeline reaches offline, by GPU or
# architecture; TensorRT 10.2.
UNET_LOW = {
    "h100-sxm-80gb": 0.252,
    "h200-sxm-141gb": 0.270,
    "b200-sxm-180gb": 0.201,
    "l40s": 0.229,
    "h100-pcie-80gb": 0.199,
    "h100-nvl-94gb": 0.216,
    "h200-nvl-141gb": 0.281,
    "rtx-pro-6000-server": 0.333,
    "mi325x-256gb": 0.217,
    "rtx-2000-ada": 0.31,
    "hopper": 0.24,
    "ada": 0.25,
}
# Images a joule of the power limit: L40S 2.0e-3, RTX 2000 Ada 1.9e-3; H100 NVL 3.7e-3, PCIe 3.5e-3.
# Small cards are held by it before their peak.
SDXL_FLOP = 245e12  # an image of 20 steps with guidance
UNET_PER_JOULE = {"ada": 2e-3, "hopper": 3.6e-3}
UNET_RELEASE = 1.09  # TensorRT 10.8 over 10.2
UNET_SERVER = {"sxm": 0.95, "pcie": 0.87}  # of the offline rate, at the server scenario's latency
POWER_SAVING = 0.76  # a GPU tuned for work per watt (MLPerf "MaxQ")
UNET_BF16 = 0.36
# Parts of the dense bf16 peak that matrix products and attention (FlashAttention-2) of a diffusion
# transformer reach, by GPU or architecture. Attention on Hopper: 35 % in Shah et al. 2024, .38 in
# training; on Ampere up to 73 % in Dao 2023, .65 in training; H20's units are slowed, its softmax
# is not.
DENOISER_MATMUL = {
    "h20-96gb": 0.85,
    "l40s": 0.55,
    "hopper": 0.705,
    "ampere": 0.80,
    "ada": 0.75,
    "blackwell": 0.58,
}
DENOISER_ATTENTION = {
    "h20-96gb": 0.60,
    "l40s": 0.45,
    "hopper": 0.36,
    "ampere": 0.65,
    "ada": 0.65,
    "blackwell": 0.50,
}
DENOISER_LOW = 0.57  # part of the fp8 peak, relative to that of the bf16 peak: .41 over .72
DENOISER_START_SECONDS = 0.145
# Decoder and copies of a megapixel: what depends on the peak, and what does not.
DECODE_SECONDS = 0.43
DECODE_FLOP = 7.9e13
# Bytes a token, layer and unit of width that eager element-wise layers move: as in training.
ELEMENTWISE_BYTES = 176.0
EXCHANGE_SHARE = 0.6
RING_STEP_SECONDS = 6e-5
# Part of a step's operations that is attention, at the reference size: it grows with the square of
# the pixels. FLUX.1: 14.9 of 74.4 TFLOP; SDXL: 0.39 of 3.38 TMAC.
ATTENTION_SHARE = {"transformer": 0.20, "unet": 0.115}
# Pipelines without a measured point near them.
INTERVALS = {"extrapolated": (0.7, 1.7)}
