"""Constants of the training model: fractions of a GPU's peaks, work a token, software overheads.

Fitted on public training points (llm-foundry, Megatron-Bridge, MLPerf Training 4.1 to 5.1, HF
Trainer; 2026-11-21). A GPU's fractions are of its dense peak by precision, `attention` of its bf16
peak; `operands` multiplies the traffic of matrix operands.
"""

from __future__ import annotations

SOURCE = "fitted on 342 public training points (2026-11-21)"
MEMORY_SOURCE = "fitted on 124 public points of training memory (2026-11-21)"
ARCHITECTURES: dict[str, dict[str, float]] = {
    "ampere": {"bf16": 0.866, "attention": 0.654, "operands": 1.88},
    "hopper": {"bf16": 0.747, "fp8": 0.787, "attention": 0.378, "operands": 2.02},
    "blackwell": {"bf16": 0.606, "fp8": 0.608, "attention": 0.548, "operands": 1.97},
    # Measured on kernels only: L40S matrix products at M = 4096.
    "ada": {"bf16": 0.62, "fp8": 0.49, "attention": 0.378, "operands": 2.02},
}
NEAREST = {"turing": "ampere", "volta": "ampere"}
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
ULTRA = 1.19  # B300, GB300 over B200
GRACE = 1.10  # GB200, GB300 over B200

# Bytes of a parameter beside its two of bf16 weight: gradients, optimizer states.
OPTIMIZERS: dict[str, tuple[float, float]] = {
    "adamw": (4.0, 12.0),
    "adamw-8bit": (2.0, 2.0),
    "adamw-bf16": (2.0, 4.0),
}
# Bytes of the loss a token and vocabulary entry; fixed bytes; factors on a bare loop's step: all,
# adapters, adapters on several GPUs; host seconds a layer and micro-batch; DeepSpeed's buffers.
FRAMEWORKS: dict[str, dict[str, float]] = {
    "trainer": {
        "loss_bytes": 16.0,
        "fixed_bytes": 2.2e9,
        "slower": 1.11,
        "adapter_slower": 1.20,
        "parallel_slower": 1.81,
        "host_lora": 3.8e-3,
        "host_qlora": 4.5e-3,
        "host_full": 10e-3,
        "deepspeed_bytes": 14.3e9,
    },
    "bare": {
        "loss_bytes": 9.4,
        "fixed_bytes": 1.9e9,
        "slower": 1.0,
        "adapter_slower": 1.01,
        "parallel_slower": 1.0,
        "host_lora": 0.0,
        "host_qlora": 0.0,
        "host_full": 0.0,
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
