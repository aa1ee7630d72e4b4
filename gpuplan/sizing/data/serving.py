"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's; `UNIFORM_INTERFERENCE` on its `interference`, where answers have any length down to
one token. `FIRST_TOKEN`: all but `first_overhead` grow from nothing with the load.
"""

from __future__ import annotations

SOURCE = "calibrated on 1,687 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,566 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.984,
    "attention_factor": 1.102,
    "expert_factor": 0.8322,
    "link_factor": 0.7276,
    "elementwise_factor": 1.648,
    "block_overhead": 2.663e-06,
    "state_overhead": 1.241e-05,
}
LATENT_OVERHEAD = 1.933e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.078e-05,
        "routing_overhead": 3.274e-06,
        "step_overhead": 0.000165,
        "sequence_overhead": 1.914e-05,
        "scaling_overhead": 9.42e-06,
        "interference": 1.2,
    },
    "sglang": {
        "layer_overhead": 8.192e-06,
        "routing_overhead": 2.839e-05,
        "step_overhead": 0.000314,
        "sequence_overhead": 3.325e-05,
        "scaling_overhead": 2.026e-06,
        "interference": 0.7637,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.047e-06,
        "routing_overhead": 3.177e-06,
        "step_overhead": 0.0004127,
        "sequence_overhead": 1.707e-05,
        "scaling_overhead": 2.283e-06,
        "interference": 1.028,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.24,
        "expert_factor": 1.198,
        "overhead": 1.98,
    },
}
UNIFORM_INTERFERENCE = 2.957
FIRST_TOKEN = {
    "vllm": {
        "first_overhead": 0.007098,
        "contended_overhead": 0.005168,
        "contended_prefill": 0.223,
        "first_step_factor": 0.5067,
        "burst_factor": 0.04606,
        "first_sequence_overhead": 7.909e-05,
    },
    "sglang": {
        "first_overhead": 0.01971,
        "contended_overhead": 0.1481,
        "contended_prefill": 0.3406,
        "first_step_factor": 2.599,
        "burst_factor": 0.08442,
        "first_sequence_overhead": 0.0001437,
    },
    "tensorrt-llm": {
        "first_overhead": 0.005797,
        "contended_overhead": 0.01776,
        "contended_prefill": 0.1789,
        "first_step_factor": 4.571,
        "burst_factor": 0.03512,
        "first_sequence_overhead": 0.0001336,
    },
}
