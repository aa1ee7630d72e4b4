"""Constants of the training step, written by bench/fit_training.py.

Fractions of peaks, exposed parts, overheads in seconds; a comment holds until the next.
"""

from __future__ import annotations

SOURCE = "fitted on 466 public training points (2026-11-21)"
CONSTANTS: dict[str, float] = {
    # large products, fraction of the dense peak
    "compute.ampere.bf16": 0.8515,
    "compute.ada.bf16": 0.5836,
    "compute.ada.fp8": 0.49,
    "compute.hopper.bf16": 0.7305,
    "compute.hopper.fp8": 0.7889,
    "compute.blackwell.bf16": 0.6346,
    "compute.blackwell.fp8": 0.6019,
    "compute.blackwell.mxfp8": 0.5654,
    "compute.blackwell.nvfp4": 0.5035,
    "compute.cdna3.bf16": 0.5293,
    "compute.cdna3.fp8": 0.4234,
    "compute.cdna4.bf16": 0.5366,
    "compute.cdna4.fp8": 0.5642,
    # attention, fraction of the bf16 peak
    "attention.ampere": 0.672,
    "attention.ada": 0.3963,
    "attention.hopper": 0.3824,
    "attention.blackwell": 0.5725,
    "attention.cdna3": 0.2773,
    "attention.cdna4": 0.3956,
    # traffic of operands, times their size
    "operands.ampere": 1.807,
    "operands.ada": 2.015,
    "operands.hopper": 1.904,
    "operands.blackwell": 1.996,
    "operands.cdna3": 2.611,
    "operands.cdna4": 2.375,
    # more of it where they are quantized to 8 bits
    "cast": 1.077,
    "cast.nvfp4": 1.136,
    # products of experts, times the rate of large ones
    "expert": 0.4737,
    # and in bf16
    "expert.bf16": 0.3297,
    # bytes a token, layer and hidden unit
    "elementwise": 156.5,
    # times
    "elementwise_mixture": 1.762,
    # traffic of routed tokens, times their operands
    "routing": 0.9763,
    # element-wise traffic for each doubling of residual streams
    "streams": 2.825,
    # bytes a token and inner unit
    "mamba": 24.83,
    # exposed part of tensor parallelism's traffic
    "tensor": 0.7684,
    # bytes a token, layer and further rank
    "context": 13400.0,
    # exposed part of expert parallelism's traffic inside a domain
    "dispatch": 0.5798,
    # and between domains
    "remote": 0.4117,
    # seconds a micro-batch and virtual stage
    "hop": 0.0006464,
    # part of the ideal pipeline bubble
    "bubble": 0.9749,
    # exposed part of the exchange of gradients
    "gradients": 0.356,
    # part of a step behind which ZeRO-3's exchange hides
    "hidden": 0.6,
    # rate of rings over nodes, times the network's
    "fabric": 2.574,
    # the optimizer's traffic, times its states
    "update": 1.595,
    # seconds a step
    "step": 0.007965,
    # seconds a step for each doubling of GPUs beyond 8
    "scale": 0.005112,
    # of nvfp4's higher peak on B300 and GB300
    "capability.10.3.nvfp4": 0.7755,
    # B300 and GB300 over B200
    "capability.10.3": 1.266,
    # GB200 and GB300 over B200
    "superchip.blackwell": 1.033,
    # siblings with more power, over the others of a generation
    "gpu.mi325x-256gb": 1.263,
    "gpu.mi355x-288gb": 1.168,
    # factors on a step
    "mlperf": 1.02,
    "mlperf_late": 1.08,
    "trainer": 1.1,
    "trainer_adapter": 1.209,
    "trainer_parallel": 1.845,
    "adapter": 1.008,
    # on the rate of attention in Triton, 2023
    "foundry_attention": 0.4791,
    "torchtune": 0.9035,
    # faster with each release
    "release": 1.007,
    "release_mixture": 1.013,
    # faster with grouped kernels and graphs (26.06)
    "graphs": 1.323,
    # seconds of the host a layer and micro-batch
    "host.lora": 0.003696,
    "host.qlora": 0.004914,
    "host.full": 0.009967,
    # of layers with experts
    "host.experts": 0.008697,
    "host.experts.superchip.blackwell": 0.002874,
    # times, with graphs
    "host.graphs": 0.7561,
    # seconds a weight and pass
    "dequantize": 8.951e-12,
}
