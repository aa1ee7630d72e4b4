"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own; `UNIFORM_INTERFERENCE` on its
`interference`, where answers have any length down to one token. `FIRST_TOKEN`: what stands after
`first_overhead` grows from nothing with the load; of what an engine's own work takes of it, those
who start no server for each measurement see `settled`. The first request of a server takes
`warming` seconds more; half of the others' part is there at `gathering` requests.
"""

from __future__ import annotations

SOURCE = "calibrated on 1,704 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,547 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.981,
    "attention_factor": 1.092,
    "expert_factor": 0.8312,
    "link_factor": 0.7315,
    "elementwise_factor": 1.501,
    "block_overhead": 2.45e-06,
    "state_overhead": 1.813e-05,
    "eager_experts": 0.38,
    "eager_state": 1.2,
    "eager_latent": 1.7,
}
LATENT_OVERHEAD = 1.975e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.233e-05,
        "routing_overhead": 3.087e-06,
        "step_overhead": 0.0001629,
        "sequence_overhead": 1.633e-05,
        "scaling_overhead": 9.196e-06,
        "eager_seconds": 0.0005,
        "captured": 0.5,
        "interference": 1.209,
    },
    "sglang": {
        "layer_overhead": 8.713e-06,
        "routing_overhead": 2.577e-05,
        "step_overhead": 0.0004121,
        "sequence_overhead": 3.493e-05,
        "scaling_overhead": 8.858e-07,
        "eager_seconds": 0.0005,
        "captured": 0.5,
        "interference": 0.762,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.084e-06,
        "routing_overhead": 3.089e-06,
        "step_overhead": 0.0004215,
        "sequence_overhead": 1.704e-05,
        "scaling_overhead": 2.233e-06,
        "eager_seconds": 0.0005,
        "captured": 0.5,
        "interference": 1.043,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.259,
        "expert_factor": 0.9576,
        "overhead": 1.249,
        "scaling_overhead": 3.115e-05,
    },
}
UNIFORM_INTERFERENCE = 3.24
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.1814,
        "gathering": 16.29,
        "first_overhead": 0.008973,
        "contended_overhead": 0.01887,
        "contended_prefill": 0.1116,
        "first_step_factor": 2.0,
        "burst_factor": 0.04107,
        "first_sequence_overhead": 0.0001956,
    },
    "sglang": {
        "settled": 0.5939,
        "gathering": 7.49,
        "first_overhead": 0.03888,
        "contended_overhead": 0.2919,
        "contended_prefill": 0.7999,
        "first_step_factor": 2.418,
        "burst_factor": 0.06257,
        "first_sequence_overhead": 0.0001547,
    },
    "tensorrt-llm": {
        "settled": 0.4951,
        "gathering": 3.516,
        "first_overhead": 0.01316,
        "contended_overhead": 0.0281,
        "contended_prefill": 0.1942,
        "first_step_factor": 8.09,
        "burst_factor": 0.02994,
        "first_sequence_overhead": 0.000159,
    },
}
