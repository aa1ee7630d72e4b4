"""Constants of the training step, written by bench/fit_training.py.

Fractions of peaks, exposed parts, overheads in seconds; a comment holds until the next.
"""

from __future__ import annotations

SOURCE = "fitted on 460 public training points (2026-11-21)"
CONSTANTS: dict[str, float] = {
    # large products, fraction of the dense peak
    "compute.ampere.bf16": 0.8516,
    "compute.ada.bf16": 0.5822,
    "compute.ada.fp8": 0.49,
    "compute.hopper.bf16": 0.7316,
    "compute.hopper.fp8": 0.8016,
    "compute.blackwell.bf16": 0.6366,
    "compute.blackwell.fp8": 0.6028,
    "compute.blackwell.mxfp8": 0.5598,
    "compute.blackwell.nvfp4": 0.5004,
    "compute.cdna3.bf16": 0.5293,
    "compute.cdna3.fp8": 0.4287,
    "compute.cdna4.bf16": 0.5378,
    "compute.cdna4.fp8": 0.574,
    # attention, fraction of the bf16 peak
    "attention.ampere": 0.6946,
    "attention.ada": 0.3956,
    "attention.hopper": 0.3993,
    "attention.blackwell": 0.5947,
    "attention.cdna3": 0.2816,
    "attention.cdna4": 0.4045,
    # traffic of operands, times their size
    "operands.ampere": 1.805,
    "operands.ada": 2.015,
    "operands.hopper": 1.923,
    "operands.blackwell": 1.996,
    "operands.cdna3": 2.605,
    "operands.cdna4": 2.354,
    # more of it where they are quantized to 8 bits
    "cast": 1.075,
    "cast.nvfp4": 1.154,
    # products of experts, times the rate of large ones
    "expert": 0.4727,
    # and in bf16
    "expert.bf16": 0.3286,
    # bytes a token, layer and hidden unit
    "elementwise": 156.4,
    # times
    "elementwise_mixture": 1.757,
    # traffic of routed tokens, times their operands
    "routing": 0.9841,
    # element-wise traffic for each doubling of residual streams
    "streams": 2.827,
    # bytes a token and inner unit
    "mamba": 24.82,
    # exposed part of tensor parallelism's traffic
    "tensor": 0.7512,
    # bytes a token, layer and further rank
    "context": 13410.0,
    # exposed part of expert parallelism's traffic inside a domain
    "dispatch": 0.578,
    # and between domains
    "remote": 0.4205,
    # seconds a micro-batch and virtual stage
    "hop": 0.0006478,
    # part of the ideal pipeline bubble
    "bubble": 0.9735,
    # exposed part of the exchange of gradients
    "gradients": 0.192,
    # part of a step behind which ZeRO-3's exchange hides
    "hidden": 0.6,
    # the optimizer's traffic, times its states
    "update": 1.585,
    # seconds a step
    "step": 0.006829,
    # seconds a step for each doubling of GPUs beyond 8
    "scale": 0.006603,
    # of nvfp4's higher peak on B300 and GB300
    "capability.10.3.nvfp4": 0.7799,
    # B300 and GB300 over B200
    "capability.10.3": 1.26,
    # GB200 and GB300 over B200
    "superchip.blackwell": 1.034,
    # siblings with more power, over the others of a generation
    "gpu.mi325x-256gb": 1.269,
    "gpu.mi355x-288gb": 1.17,
    # factors on a step
    "mlperf": 1.047,
    "mlperf_late": 1.101,
    "trainer": 1.101,
    "trainer_adapter": 1.21,
    "trainer_parallel": 1.846,
    "adapter": 0.9971,
    # on the rate of attention in Triton, 2023
    "foundry_attention": 0.4626,
    "torchtune": 0.9074,
    # faster with each release
    "release": 1.009,
    "release_mixture": 1.013,
    # faster with grouped kernels and graphs (26.06)
    "graphs": 1.323,
    # seconds of the host a layer and micro-batch
    "host.lora": 0.003693,
    "host.qlora": 0.004912,
    "host.full": 0.009961,
    # of layers with experts
    "host.experts": 0.008709,
    "host.experts.superchip.blackwell": 0.002872,
    # times, with graphs
    "host.graphs": 0.7625,
    # seconds a weight and pass
    "dequantize": 8.937e-12,
}
