"""Constants of the training step, written by bench/fit_training.py.

Fractions of peaks, exposed parts, overheads in seconds; a comment holds until the next.
"""

from __future__ import annotations

SOURCE = "fitted on 515 public training points (2026-11-27)"
CONSTANTS: dict[str, float] = {
    # large products, fraction of the dense peak
    "compute.ampere.bf16": 0.8516,
    "compute.ada.bf16": 0.5807,
    "compute.ada.fp8": 0.49,
    "compute.hopper.bf16": 0.7314,
    "compute.hopper.fp8": 0.874,
    "compute.blackwell.bf16": 0.6358,
    "compute.blackwell.fp8": 0.6119,
    "compute.blackwell.mxfp8": 0.5883,
    "compute.blackwell.nvfp4": 0.5177,
    "compute.cdna3.bf16": 0.5293,
    "compute.cdna3.fp8": 0.4288,
    "compute.cdna4.bf16": 0.5374,
    "compute.cdna4.fp8": 0.5736,
    # attention, fraction of the bf16 peak
    "attention.ampere": 0.654,
    "attention.ada": 0.3956,
    "attention.hopper": 0.3662,
    "attention.blackwell": 0.4908,
    "attention.cdna3": 0.2816,
    "attention.cdna4": 0.4037,
    # traffic of operands, times their size
    "operands.ampere": 1.809,
    "operands.ada": 2.016,
    "operands.hopper": 1.895,
    "operands.blackwell": 2.009,
    "operands.cdna3": 2.607,
    "operands.cdna4": 2.355,
    # more of it where they are quantized to 8 bits
    "cast": 1.094,
    "cast.nvfp4": 1.09,
    # products of experts, times the rate of large ones
    "expert": 0.4565,
    # and in bf16
    "expert.bf16": 0.3347,
    # bytes a token, layer and hidden unit
    "elementwise": 156.5,
    # times
    "elementwise_mixture": 1.826,
    # traffic of routed tokens, times their operands
    "routing": 1.029,
    # element-wise traffic for each doubling of residual streams
    "streams": 2.777,
    # bytes a token and inner unit
    "mamba": 24.66,
    # exposed part of tensor parallelism's traffic
    "tensor": 0.8997,
    # bytes a token, layer and further rank
    "context": 14210.0,
    # exposed part of expert parallelism's traffic inside a domain
    "dispatch": 0.5687,
    # and between domains
    "remote": 0.403,
    # and without a dispatcher that sends once a node
    "remote.plain": 2.421,
    # seconds a micro-batch and virtual stage
    "hop": 0.0005845,
    # part of the output layer for which other stages wait
    "last": 1.057,
    # part of the ideal pipeline bubble
    "bubble": 0.9615,
    # exposed part of the exchange of gradients
    "gradients": 0.1967,
    # part of a step behind which ZeRO-3's exchange hides
    "hidden": 0.5844,
    # the optimizer's traffic, times its states
    "update": 1.565,
    # seconds a step
    "step": 0.006478,
    # seconds a step for each doubling of GPUs beyond 8
    "scale": 0.006603,
    # of nvfp4's higher peak on B300 and GB300
    "capability.10.3.nvfp4": 0.7777,
    # B300 and GB300 over B200
    "capability.10.3": 1.256,
    # GB200 and GB300 over B200
    "superchip.blackwell": 1.05,
    # siblings with more power, over the others of a generation
    "gpu.mi325x-256gb": 1.269,
    "gpu.mi355x-288gb": 1.17,
    # factors on a step
    "mlperf": 1.043,
    "mlperf_late": 1.111,
    "trainer": 1.099,
    "trainer_adapter": 1.208,
    "trainer_parallel": 1.845,
    "adapter": 1.0,
    # on the rate of attention in Triton, 2023
    "foundry_attention": 0.4927,
    # a tenth of a round before 5.0
    "mlperf_early": 1.006,
    "torchtune": 0.9042,
    "torchtitan": 1.059,
    # and where it scales to 8 bits dynamically
    "torchtitan.fp8": 1.12,
    # without a compiler
    "eager": 1.078,
    # exponent of the part of its power that a GPU may draw
    "power": 0.4965,
    # faster with each release
    "release": 1.006,
    "release_mixture": 1.014,
    # faster with grouped kernels and graphs (26.06)
    "graphs": 1.316,
    # seconds of the host a layer and micro-batch
    "host.lora": 0.003708,
    "host.qlora": 0.004922,
    "host.full": 0.009984,
    # of layers with experts
    "host.experts": 0.008755,
    "host.experts.superchip.blackwell": 0.002882,
    # times, with graphs
    "host.graphs": 0.7693,
    # seconds a weight and pass
    "dequantize": 8.979e-12,
}
