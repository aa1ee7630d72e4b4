"""Constants of the serving model and their intervals, written by bench/calibrate.py.

Overheads are seconds. An interval holds 90 % of the measured values, as factors on the
prediction: calibrated where the GPU and engine were served, from models left out; else
extrapolated, from GPUs left out, half as wide again in the logarithm."""

from __future__ import annotations

SOURCE = "calibrated on 1,152 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,103 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.8777,
    "attention_factor": 1.075,
    "expert_factor": 0.7547,
    "link_factor": 0.7966,
    "elementwise_factor": 2.196,
}
LATENT_OVERHEAD = 2.145e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.059e-05,
        "routing_overhead": 2.816e-06,
        "step_overhead": 0.0001396,
        "sequence_overhead": 1.898e-05,
        "scaling_overhead": 9.472e-06,
        "interference": 1.04,
    },
    "sglang": {
        "layer_overhead": 1.133e-05,
        "routing_overhead": 2.6e-05,
        "step_overhead": 0.000583,
        "sequence_overhead": 2.951e-05,
        "scaling_overhead": 5.673e-07,
        "interference": 0.594,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.843e-06,
        "routing_overhead": 2.956e-06,
        "step_overhead": 0.0003647,
        "sequence_overhead": 1.629e-05,
        "scaling_overhead": 6.647e-06,
        "interference": 0.8351,
    },
}
FIRST = {
    "vllm": {
        "first_overhead": 0.01814,
        "first_prefill_factor": 1.203,
        "first_step_factor": 2.288,
        "burst_factor": 0.06195,
        "first_sequence_overhead": 0.0001688,
    },
    "sglang": {
        "first_overhead": 0.3094,
        "first_prefill_factor": 0.8544,
        "first_step_factor": 2.349,
        "burst_factor": 0.08301,
        "first_sequence_overhead": 0.0008874,
    },
    "tensorrt-llm": {
        "first_overhead": 0.01291,
        "first_prefill_factor": 0.7932,
        "first_step_factor": 12.65,
        "burst_factor": 0.03826,
        "first_sequence_overhead": 0.0001812,
    },
}
INTERVALS: dict[tuple[str, str, str], tuple[float, float]] = {
    # models left out: MdAPE 7.2% P90 19.4% n 534
    ("time_per_output_token", "dense", "calibrated"): (0.828, 1.225),
    # GPUs left out: MdAPE 7.8% P90 20.9% n 534
    ("time_per_output_token", "dense", "extrapolated"): (0.733, 1.392),
    # models left out: MdAPE 19.4% P90 65.1% n 618
    ("time_per_output_token", "moe", "calibrated"): (0.522, 1.307),
    # GPUs left out: MdAPE 13.0% P90 31.6% n 618
    ("time_per_output_token", "moe", "extrapolated"): (0.522, 1.487),
    # models left out: MdAPE 17.5% P90 42.7% n 488
    ("time_to_first_token", "vllm", "calibrated"): (0.664, 1.496),
    # GPUs left out: MdAPE 14.4% P90 35.0% n 488
    ("time_to_first_token", "vllm", "extrapolated"): (0.64, 1.922),
    # models left out: MdAPE 45.2% P90 126.4% n 121
    ("time_to_first_token", "sglang", "calibrated"): (0.31, 2.746),
    # GPUs left out: MdAPE 48.2% P90 162.1% n 121
    ("time_to_first_token", "sglang", "extrapolated"): (0.209, 4.629),
    # models left out: MdAPE 32.2% P90 85.9% n 494
    ("time_to_first_token", "tensorrt-llm", "calibrated"): (0.454, 2.68),
    # GPUs left out: MdAPE 28.9% P90 92.1% n 494
    ("time_to_first_token", "tensorrt-llm", "extrapolated"): (0.281, 4.387),
}
