"""Constants of image and video generation, fitted by bench/fitting/diffusion.py.

UNets: SDXL in fp8 or int8, MLPerf Inference v4.1 and v5.1. Transformers: FLUX.1-dev at 28 steps on
one to four H100 (torch.compile) and HunyuanVideo at 50 steps on one to eight H20, by xDiT.
"""

from __future__ import annotations

SOURCE = "FLUX.1 and HunyuanVideo of xDiT, SDXL of MLPerf Inference v4.1 and v5.1 (2026-11-21)"
# Part of the dense fp8 (else int8) peak that a whole SDXL pipeline reaches offline, by GPU or
# architecture; TensorRT 10.2.
UNET_LOW = {
    "h100-sxm-80gb": 0.289,
    "h200-sxm-141gb": 0.310,
    "b200-sxm-180gb": 0.231,
    "l40s": 0.263,
    "h100-pcie-80gb": 0.228,
    "h100-nvl-94gb": 0.248,
    "h200-nvl-141gb": 0.322,
    "rtx-pro-6000-server": 0.382,
    "mi325x-256gb": 0.249,
    "rtx-2000-ada": 0.356,
    "hopper": 0.275,
    "ada": 0.287,
}
# Operations a joule of the power limit: L40S 5.6e11, RTX 2000 Ada 5.3e11; H100 NVL 1.04e12, PCIe
# 0.98e12. Small cards are held by it before their peak.
UNET_FLOP_PER_JOULE = {"ada": 5.62e11, "hopper": 1.012e12}
UNET_BF16 = 0.413
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
# Decoder and copies of a pixel: what does not depend on the peak, and what does.
PIXEL_DECODE_SECONDS = 4.3e-7
PIXEL_DECODE_FLOP = 7.9e7
# Bytes a token, layer and unit of width that eager element-wise layers move: as in training.
ELEMENTWISE_BYTES = 176.0
# Engines that fuse a transformer's element-wise layers, and the source.
FUSING = {
    "vllm-omni": "vLLM-Omni compiles repeated blocks (vllm-project/vllm-omni#684, 2026-01-07)",
    "torch.compile": "fused by torch.compile",
}
# Interval of the time of pipelines without a measured point near them.
UNMEASURED = (0.7, 1.7)

# Memory. A pixel's decoder and activations are 3e9 bytes an image of 1,024 x 1,024; with fragments
# of the allocator FLUX.1-dev in diffusers peaks 5.1e9 above its weights (Hugging Face blog,
# "Exploring Quantization Backends in Diffusers", 2025-05-21).
PIXEL_BYTES = 3e9 / 2**20
CONTEXT_BYTES = 1e9
