"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `FIRST_TOKEN` is by client: prompts of spread or of fixed lengths.
"""

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
