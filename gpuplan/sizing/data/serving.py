"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own; `UNIFORM_INTERFERENCE` on its
`interference`, where answers have any length down to one token. `FIRST_TOKEN`: what stands after
`first_overhead` grows from nothing with the load; of what an engine's own work takes of it, those
who start no server for each measurement see `settled`. The first request of a server takes
`warming` seconds more.
"""

from __future__ import annotations

SOURCE = "calibrated on 1,721 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,563 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.9773,
    "attention_factor": 1.096,
    "expert_factor": 0.822,
    "link_factor": 0.7243,
    "elementwise_factor": 1.487,
    "block_overhead": 2.337e-06,
    "state_overhead": 1.706e-05,
}
LATENT_OVERHEAD = 1.973e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.373e-05,
        "routing_overhead": 3.475e-06,
        "step_overhead": 0.000191,
        "sequence_overhead": 1.612e-05,
        "scaling_overhead": 9.043e-06,
        "interference": 1.2,
    },
    "sglang": {
        "layer_overhead": 8.956e-06,
        "routing_overhead": 2.731e-05,
        "step_overhead": 0.0004095,
        "sequence_overhead": 3.487e-05,
        "scaling_overhead": 9.157e-07,
        "interference": 0.7684,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.196e-06,
        "routing_overhead": 3.191e-06,
        "step_overhead": 0.0004354,
        "sequence_overhead": 1.738e-05,
        "scaling_overhead": 2.318e-06,
        "interference": 1.05,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.27,
        "expert_factor": 1.265,
        "overhead": 1.208,
        "scaling_overhead": 2.633e-05,
    },
}
UNIFORM_INTERFERENCE = 3.187
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.1781,
        "warming": 0.5,
        "first_overhead": 0.009991,
        "contended_overhead": 0.01981,
        "contended_prefill": 0.1294,
        "first_step_factor": 2.0,
        "burst_factor": 0.04477,
        "first_sequence_overhead": 0.0001846,
    },
    "sglang": {
        "settled": 0.6481,
        "warming": 0.749,
        "first_overhead": 0.03943,
        "contended_overhead": 0.1591,
        "contended_prefill": 0.463,
        "first_step_factor": 3.371,
        "burst_factor": 0.0831,
        "first_sequence_overhead": 0.0001855,
    },
    "tensorrt-llm": {
        "settled": 0.529,
        "warming": 0.5,
        "first_overhead": 0.006188,
        "contended_overhead": 0.02991,
        "contended_prefill": 0.1564,
        "first_step_factor": 7.862,
        "burst_factor": 0.03428,
        "first_sequence_overhead": 0.000173,
    },
}
