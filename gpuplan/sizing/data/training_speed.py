"""Constants of the training step, written by bench/fitting/training.py.

Fractions of peaks, exposed parts, overheads in seconds; a comment holds until the next.
"""

from __future__ import annotations

SOURCE = "fitted on 515 public training points (2026-11-27)"
CONSTANTS: dict[str, float] = {
    # large products, fraction of the dense peak
    "compute.ampere.bf16": 0.8327,
    "compute.ada.bf16": 0.5748,
    "compute.ada.fp8": 0.49,
    "compute.hopper.bf16": 0.7185,
    "compute.hopper.fp8": 0.804,
    "compute.blackwell.bf16": 0.6464,
    "compute.blackwell.fp8": 0.573,
    "compute.blackwell.mxfp8": 0.5516,
    "compute.blackwell.nvfp4": 0.4709,
    "compute.cdna3.bf16": 0.5293,
    "compute.cdna3.fp8": 0.4223,
    "compute.cdna4.bf16": 0.5371,
    "compute.cdna4.fp8": 0.5632,
    # attention, fraction of the bf16 peak
    "attention.ampere": 0.6707,
    "attention.ada": 0.3945,
    "attention.hopper": 0.3734,
    "attention.blackwell": 0.5367,
    "attention.cdna3": 0.2764,
    "attention.cdna4": 0.3957,
    # of Blackwell's before cuDNN 9.17, times
    "attention.early.blackwell": 0.8768,
    # traffic of operands, times their size
    "operands.ampere": 1.708,
    "operands.ada": 2.018,
    "operands.hopper": 1.96,
    "operands.blackwell": 1.9,
    "operands.cdna3": 2.613,
    "operands.cdna4": 2.372,
    # more of it where they are quantized to 8 bits
    "cast": 1.088,
    "cast.nvfp4": 1.054,
    # products of experts, times the rate of large ones
    "expert": 0.437,
    # and in bf16
    "expert.bf16": 0.3317,
    # bytes a token, layer and hidden unit
    "elementwise": 131.5,
    # times
    "elementwise_mixture": 1.957,
    # traffic of routed tokens, times their operands
    "routing": 1.012,
    # bytes a token and entry of the vocabulary
    "logits": 22.45,
    # traffic of adapters, times the operands of the products
    "adapters": 2.111,
    # element-wise traffic for each doubling of residual streams
    "streams": 2.904,
    # bytes a token and inner unit
    "mamba": 24.68,
    # exposed part of tensor parallelism's traffic
    "tensor": 1.006,
    # bytes a token, layer and further rank
    "context": 15340.0,
    # exposed part of expert parallelism's traffic inside a domain
    "dispatch": 0.5587,
    # and between domains
    "remote": 0.3934,
    # and without a dispatcher that sends once a node
    "remote.plain": 2.419,
    # seconds a micro-batch and virtual stage
    "hop": 0.0006855,
    # part of the output layer for which other stages wait
    "last": 1.016,
    # part of the ideal pipeline bubble
    "bubble": 0.9928,
    # exposed part of the exchange of gradients
    "gradients": 0.2077,
    # part of a step behind which ZeRO-3's exchange hides
    "hidden": 0.5764,
    # the optimizer's traffic, times its states
    "update": 1.573,
    # seconds a step
    "step": 0.005977,
    # seconds a step for each doubling of GPUs beyond 8
    "scale": 0.006897,
    # of nvfp4's higher peak on B300 and GB300
    "capability.10.3.nvfp4": 0.7328,
    # B300 and GB300 over B200
    "capability.10.3": 1.223,
    # GB200 and GB300 over B200
    "superchip.blackwell": 1.033,
    # siblings with more power, over the others of a generation
    "gpu.mi325x-256gb": 1.261,
    "gpu.mi355x-288gb": 1.166,
    # factors on a step
    "mlperf": 1.057,
    "mlperf_late.blackwell": 1.102,
    "trainer": 1.092,
    "trainer_adapter": 1.198,
    "trainer_parallel": 1.84,
    "adapter": 0.9656,
    # on the rate of attention in Triton, 2023
    "foundry_attention": 0.4822,
    # a tenth of a round before 5.0
    "mlperf_early": 1.005,
    "torchtune": 0.9095,
    "torchtitan": 1.05,
    # and where it scales to 8 bits dynamically
    "torchtitan.fp8": 1.111,
    # without a compiler
    "eager": 1.09,
    # exponent of the part of its power that a GPU may draw
    "power": 0.4826,
    # faster with each release
    "release": 1.007,
    "release_mixture": 1.015,
    # faster with grouped kernels and graphs (26.06)
    "graphs.blackwell": 1.318,
    # seconds of the host a layer and micro-batch
    "host.lora": 0.003737,
    "host.qlora": 0.004942,
    "host.full": 0.01005,
    # of layers with experts
    "host.experts": 0.008906,
    "host.experts.superchip.blackwell": 0.002864,
    # times, with graphs
    "host.graphs": 0.7749,
    # seconds a weight and pass
    "dequantize": 9.079e-12,
}
