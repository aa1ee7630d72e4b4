"""Constants of the training step, written by bench/fit_training.py.

Fractions of peaks, exposed parts, overheads in seconds; a comment holds until the next.
"""

from __future__ import annotations

SOURCE = "fitted on 515 public training points (2026-11-21)"
CONSTANTS: dict[str, float] = {
    # large products, fraction of the dense peak
    "compute.ampere.bf16": 0.8524,
    "compute.ada.bf16": 0.5812,
    "compute.ada.fp8": 0.49,
    "compute.hopper.bf16": 0.7321,
    "compute.hopper.fp8": 0.8337,
    "compute.blackwell.bf16": 0.6425,
    "compute.blackwell.fp8": 0.6177,
    "compute.blackwell.mxfp8": 0.5885,
    "compute.blackwell.nvfp4": 0.5278,
    "compute.cdna3.bf16": 0.5293,
    "compute.cdna3.fp8": 0.4246,
    "compute.cdna4.bf16": 0.536,
    "compute.cdna4.fp8": 0.5657,
    # attention, fraction of the bf16 peak
    "attention.ampere": 0.6434,
    "attention.ada": 0.3958,
    "attention.hopper": 0.3595,
    "attention.blackwell": 0.494,
    "attention.cdna3": 0.2783,
    "attention.cdna4": 0.3958,
    # traffic of operands, times their size
    "operands.ampere": 1.804,
    "operands.ada": 2.015,
    "operands.hopper": 1.88,
    "operands.blackwell": 2.011,
    "operands.cdna3": 2.611,
    "operands.cdna4": 2.377,
    # more of it where they are quantized to 8 bits
    "cast": 1.092,
    "cast.nvfp4": 1.115,
    # products of experts, times the rate of large ones
    "expert": 0.4642,
    # and in bf16
    "expert.bf16": 0.3333,
    # bytes a token, layer and hidden unit
    "elementwise": 157.4,
    # times
    "elementwise_mixture": 1.832,
    # traffic of routed tokens, times their operands
    "routing": 1.035,
    # element-wise traffic for each doubling of residual streams
    "streams": 2.771,
    # bytes a token and inner unit
    "mamba": 24.64,
    # exposed part of tensor parallelism's traffic
    "tensor": 0.9338,
    # bytes a token, layer and further rank
    "context": 13430.0,
    # exposed part of expert parallelism's traffic inside a domain
    "dispatch": 0.5664,
    # and between domains
    "remote": 0.3854,
    # and without a dispatcher that sends once a node
    "remote.plain": 2.426,
    # seconds a micro-batch and virtual stage
    "hop": 0.0007726,
    # part of the ideal pipeline bubble
    "bubble": 0.9752,
    # exposed part of the exchange of gradients
    "gradients": 0.1995,
    # part of a step behind which ZeRO-3's exchange hides
    "hidden": 0.5754,
    # the optimizer's traffic, times its states
    "update": 1.596,
    # seconds a step
    "step": 0.006794,
    # seconds a step for each doubling of GPUs beyond 8
    "scale": 0.00665,
    # of nvfp4's higher peak on B300 and GB300
    "capability.10.3.nvfp4": 0.7828,
    # B300 and GB300 over B200
    "capability.10.3": 1.254,
    # GB200 and GB300 over B200
    "superchip.blackwell": 1.045,
    # siblings with more power, over the others of a generation
    "gpu.mi325x-256gb": 1.264,
    "gpu.mi355x-288gb": 1.166,
    # factors on a step
    "mlperf": 1.026,
    "mlperf_late": 1.097,
    "trainer": 1.098,
    "trainer_adapter": 1.207,
    "trainer_parallel": 1.844,
    "adapter": 1.003,
    # on the rate of attention in Triton, 2023
    "foundry_attention": 0.5014,
    # a tenth of a round before 5.0
    "mlperf_early": 1.005,
    "torchtune": 0.9022,
    "torchtitan": 1.05,
    # and where it scales to 8 bits dynamically
    "torchtitan.fp8": 1.107,
    # without a compiler
    "eager": 1.082,
    # exponent of the part of its power that a GPU may draw
    "power": 0.497,
    # faster with each release
    "release": 1.012,
    "release_mixture": 1.014,
    # faster with grouped kernels and graphs (26.06)
    "graphs": 1.318,
    # seconds of the host a layer and micro-batch
    "host.lora": 0.003711,
    "host.qlora": 0.004923,
    "host.full": 0.009986,
    # of layers with experts
    "host.experts": 0.00875,
    "host.experts.superchip.blackwell": 0.002873,
    # times, with graphs
    "host.graphs": 0.7639,
    # seconds a weight and pass
    "dequantize": 8.992e-12,
}
