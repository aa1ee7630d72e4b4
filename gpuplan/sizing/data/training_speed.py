"""Constants of the training step, written by bench/fit_training.py.

Fractions of peaks, exposed parts, overheads in seconds; a comment holds until the next.
"""

from __future__ import annotations

SOURCE = "fitted on 460 public training points (2026-11-21)"
CONSTANTS: dict[str, float] = {
    # large products, fraction of the dense peak
    "compute.ampere.bf16": 0.8511,
    "compute.ada.bf16": 0.5819,
    "compute.ada.fp8": 0.49,
    "compute.hopper.bf16": 0.7309,
    "compute.hopper.fp8": 0.8023,
    "compute.blackwell.bf16": 0.6366,
    "compute.blackwell.fp8": 0.6004,
    "compute.blackwell.mxfp8": 0.5579,
    "compute.blackwell.nvfp4": 0.4998,
    "compute.cdna3.bf16": 0.5293,
    "compute.cdna3.fp8": 0.4293,
    "compute.cdna4.bf16": 0.5388,
    "compute.cdna4.fp8": 0.576,
    # attention, fraction of the bf16 peak
    "attention.ampere": 0.692,
    "attention.ada": 0.3956,
    "attention.hopper": 0.3974,
    "attention.blackwell": 0.5931,
    "attention.cdna3": 0.282,
    "attention.cdna4": 0.4075,
    # traffic of operands, times their size
    "operands.ampere": 1.808,
    "operands.ada": 2.015,
    "operands.hopper": 1.927,
    "operands.blackwell": 1.988,
    "operands.cdna3": 2.605,
    "operands.cdna4": 2.342,
    # more of it where they are quantized to 8 bits
    "cast": 1.076,
    "cast.nvfp4": 1.125,
    # products of experts, times the rate of large ones
    "expert": 0.4743,
    # and in bf16
    "expert.bf16": 0.327,
    # bytes a token, layer and hidden unit
    "elementwise": 155.8,
    # times
    "elementwise_mixture": 1.762,
    # traffic of routed tokens, times their operands
    "routing": 0.9844,
    # element-wise traffic for each doubling of residual streams
    "streams": 2.827,
    # bytes a token and inner unit
    "mamba": 24.79,
    # exposed part of tensor parallelism's traffic
    "tensor": 0.7602,
    # bytes a token, layer and further rank
    "context": 13520.0,
    # exposed part of expert parallelism's traffic inside a domain
    "dispatch": 0.5846,
    # and between domains
    "remote": 0.4194,
    # seconds a micro-batch and virtual stage
    "hop": 0.0006468,
    # part of the ideal pipeline bubble
    "bubble": 0.9734,
    # exposed part of the exchange of gradients
    "gradients": 0.3078,
    # part of a step behind which ZeRO-3's exchange hides
    "hidden": 0.6,
    # rate of rings over nodes, times the network's
    "fabric": 2.25,
    # the optimizer's traffic, times its states
    "update": 1.584,
    # seconds a step
    "step": 0.007033,
    # seconds a step for each doubling of GPUs beyond 8
    "scale": 0.006267,
    # of nvfp4's higher peak on B300 and GB300
    "capability.10.3.nvfp4": 0.7763,
    # B300 and GB300 over B200
    "capability.10.3": 1.263,
    # GB200 and GB300 over B200
    "superchip.blackwell": 1.038,
    # siblings with more power, over the others of a generation
    "gpu.mi325x-256gb": 1.27,
    "gpu.mi355x-288gb": 1.174,
    # factors on a step
    "mlperf": 1.049,
    "mlperf_late": 1.101,
    "trainer": 1.101,
    "trainer_adapter": 1.209,
    "trainer_parallel": 1.846,
    "adapter": 0.9971,
    # on the rate of attention in Triton, 2023
    "foundry_attention": 0.4643,
    "torchtune": 0.9071,
    # faster with each release
    "release": 1.009,
    "release_mixture": 1.013,
    # faster with grouped kernels and graphs (26.06)
    "graphs": 1.321,
    # seconds of the host a layer and micro-batch
    "host.lora": 0.003693,
    "host.qlora": 0.004912,
    "host.full": 0.009962,
    # of layers with experts
    "host.experts": 0.008699,
    "host.experts.superchip.blackwell": 0.002879,
    # times, with graphs
    "host.graphs": 0.7615,
    # seconds a weight and pass
    "dequantize": 8.94e-12,
}
