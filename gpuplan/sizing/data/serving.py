"""Constants of the serving model and their intervals, written by bench/calibrate.py.

Overheads are seconds. An interval holds 90 % of the measured values, as factors on the
prediction: calibrated where the GPU and engine were served, from models left out; else
extrapolated, from GPUs left out, half as wide again in the logarithm."""

from __future__ import annotations

SOURCE = "calibrated on 1,152 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,103 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.879,
    "attention_factor": 1.071,
    "expert_factor": 0.7543,
    "link_factor": 0.795,
    "elementwise_factor": 2.194,
}
LATENT_OVERHEAD = 2.138e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.066e-05,
        "routing_overhead": 2.826e-06,
        "step_overhead": 0.0001397,
        "sequence_overhead": 1.872e-05,
        "scaling_overhead": 9.521e-06,
        "interference": 1.056,
    },
    "sglang": {
        "layer_overhead": 1.141e-05,
        "routing_overhead": 2.612e-05,
        "step_overhead": 0.0005853,
        "sequence_overhead": 2.939e-05,
        "scaling_overhead": 5.678e-07,
        "interference": 0.6019,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.859e-06,
        "routing_overhead": 2.954e-06,
        "step_overhead": 0.0003695,
        "sequence_overhead": 1.61e-05,
        "scaling_overhead": 6.651e-06,
        "interference": 0.8473,
    },
}
FIRST = {
    "vllm": {
        "first_overhead": 0.01816,
        "first_prefill_factor": 1.205,
        "first_step_factor": 2.282,
        "burst_factor": 0.06198,
        "first_sequence_overhead": 0.0001693,
    },
    "sglang": {
        "first_overhead": 0.3095,
        "first_prefill_factor": 0.8549,
        "first_step_factor": 2.337,
        "burst_factor": 0.0831,
        "first_sequence_overhead": 0.0008867,
    },
    "tensorrt-llm": {
        "first_overhead": 0.01292,
        "first_prefill_factor": 0.7952,
        "first_step_factor": 12.65,
        "burst_factor": 0.03824,
        "first_sequence_overhead": 0.000181,
    },
}
INTERVALS: dict[tuple[str, str, str], tuple[float, float]] = {
    # models left out: MdAPE 7.2% P90 19.4% n 534
    ("time_per_output_token", "dense", "calibrated"): (0.83, 1.224),
    # GPUs left out: MdAPE 7.7% P90 20.5% n 534
    ("time_per_output_token", "dense", "extrapolated"): (0.737, 1.39),
    # models left out: MdAPE 19.4% P90 65.5% n 618
    ("time_per_output_token", "moe", "calibrated"): (0.519, 1.305),
    # GPUs left out: MdAPE 12.9% P90 31.7% n 618
    ("time_per_output_token", "moe", "extrapolated"): (0.519, 1.488),
    # models left out: MdAPE 17.5% P90 42.7% n 488
    ("time_to_first_token", "vllm", "calibrated"): (0.663, 1.498),
    # GPUs left out: MdAPE 14.5% P90 35.0% n 488
    ("time_to_first_token", "vllm", "extrapolated"): (0.64, 1.925),
    # models left out: MdAPE 45.3% P90 126.5% n 121
    ("time_to_first_token", "sglang", "calibrated"): (0.31, 2.748),
    # GPUs left out: MdAPE 48.2% P90 162.1% n 121
    ("time_to_first_token", "sglang", "extrapolated"): (0.209, 4.636),
    # models left out: MdAPE 32.2% P90 85.9% n 494
    ("time_to_first_token", "tensorrt-llm", "calibrated"): (0.454, 2.683),
    # GPUs left out: MdAPE 28.9% P90 92.1% n 494
    ("time_to_first_token", "tensorrt-llm", "extrapolated"): (0.28, 4.399),
}
