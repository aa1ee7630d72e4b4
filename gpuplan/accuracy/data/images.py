"""Constants of images and video that no plan needs, fitted by bench/fitting/diffusion.py."""

from __future__ import annotations

# SDXL in MLPerf Inference, relative to the offline rate of TensorRT 10.2.
RELEASE = 1.09  # TensorRT 10.8
SERVER = {"sxm": 0.95, "pcie": 0.87}  # at the latency of the server scenario
POWER_SAVING = 0.76  # a GPU tuned for work per watt (MLPerf "MaxQ")
# Diffusion transformers on several GPUs: part of the links' rate, overhead of a pass around a ring.
EXCHANGE_SHARE = 0.6
RING_STEP_SECONDS = 6e-5
