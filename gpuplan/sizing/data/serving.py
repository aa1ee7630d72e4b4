"""Constants of the serving model and their intervals, written by bench/calibrate.py.

Overheads are seconds. `FIRST_TOKEN` is by client: prompts of spread or of fixed lengths.
An interval holds 90 % of the measured values, as factors on the
prediction: calibrated where the GPU and engine were served, from models left out; else
extrapolated, from GPUs left out, half as wide again in the logarithm."""

from __future__ import annotations

SOURCE = "calibrated on 1,489 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,430 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.8765,
    "attention_factor": 1.067,
    "expert_factor": 0.7568,
    "link_factor": 0.8667,
    "elementwise_factor": 1.283,
    "block_overhead": 2.146e-06,
    "state_overhead": 1.263e-05,
}
LATENT_OVERHEAD = 1.592e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.826e-05,
        "routing_overhead": 3.037e-06,
        "step_overhead": 0.000154,
        "sequence_overhead": 1.494e-05,
        "scaling_overhead": 8.535e-06,
        "interference": 1.242,
    },
    "sglang": {
        "layer_overhead": 1.004e-05,
        "routing_overhead": 2.086e-05,
        "step_overhead": 0.0005524,
        "sequence_overhead": 3.251e-05,
        "scaling_overhead": 7.733e-07,
        "interference": 0.7141,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.762e-06,
        "routing_overhead": 3.058e-06,
        "step_overhead": 0.0003627,
        "sequence_overhead": 1.426e-05,
        "scaling_overhead": 2.192e-06,
        "interference": 1.023,
    },
}
FIRST_TOKEN = {
    "spread": {
        "vllm": {
            "first_overhead": 0.01459,
            "first_prefill_factor": 1.585,
            "first_step_factor": 1.049,
            "burst_factor": 0.06981,
            "first_sequence_overhead": 8.033e-05,
        },
        "sglang": {
            "first_overhead": 0.1955,
            "first_prefill_factor": 0.8284,
            "first_step_factor": 3.138,
            "burst_factor": 0.1417,
            "first_sequence_overhead": 0.001383,
        },
        "tensorrt-llm": {
            "first_overhead": 0.003835,
            "first_prefill_factor": 0.9504,
            "first_step_factor": 12.38,
            "burst_factor": 0.05173,
            "first_sequence_overhead": 5.817e-05,
        },
    },
    "fixed": {
        "vllm": {
            "first_overhead": 0.03351,
            "first_prefill_factor": 1.554,
            "first_step_factor": 1.636,
            "burst_factor": 0.06796,
            "first_sequence_overhead": 0.0002246,
        },
        "sglang": {
            "first_overhead": 0.2132,
            "first_prefill_factor": 1.699,
            "first_step_factor": 3.22,
            "burst_factor": 0.1855,
            "first_sequence_overhead": 0.0002368,
        },
        "tensorrt-llm": {
            "first_overhead": 0.06775,
            "first_prefill_factor": 2.486,
            "first_step_factor": 0.5806,
            "burst_factor": 0.03573,
            "first_sequence_overhead": 0.001821,
        },
    },
}
FIRST = FIRST_TOKEN["spread"]
INTERVALS: dict[tuple[str, str, str], tuple[float, float]] = {
    # models left out: MdAPE 6.4% P90 18.3% n 534
    ("time_per_output_token", "dense", "calibrated"): (0.803, 1.169),
    # GPUs left out: MdAPE 6.9% P90 19.8% n 534
    ("time_per_output_token", "dense", "extrapolated"): (0.706, 1.312),
    # models left out: MdAPE 12.1% P90 29.4% n 955
    ("time_per_output_token", "moe", "calibrated"): (0.75, 1.384),
    # GPUs left out: MdAPE 11.2% P90 32.3% n 955
    ("time_per_output_token", "moe", "extrapolated"): (0.626, 1.644),
    # models left out: MdAPE 16.0% P90 38.6% n 566
    ("time_to_first_token", "vllm", "calibrated"): (0.713, 1.596),
    # GPUs left out: MdAPE 14.1% P90 35.6% n 566
    ("time_to_first_token", "vllm", "extrapolated"): (0.668, 2.112),
    # models left out: MdAPE 31.1% P90 82.1% n 266
    ("time_to_first_token", "sglang", "calibrated"): (0.444, 2.276),
    # GPUs left out: MdAPE 35.6% P90 100.8% n 266
    ("time_to_first_token", "sglang", "extrapolated"): (0.24, 3.612),
    # models left out: MdAPE 30.4% P90 77.7% n 598
    ("time_to_first_token", "tensorrt-llm", "calibrated"): (0.516, 2.576),
    # GPUs left out: MdAPE 27.3% P90 75.8% n 598
    ("time_to_first_token", "tensorrt-llm", "extrapolated"): (0.397, 5.005),
}
