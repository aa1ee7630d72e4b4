"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own; `UNIFORM_INTERFERENCE` on its
`interference`, where answers have any length down to one token. `FIRST_TOKEN`: what stands after
`first_overhead` grows from nothing with the load; of what an engine's own work takes of it, those
who start no server for each measurement see `settled`. The first request of a server takes
`warming` seconds more.
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
}
LATENT_OVERHEAD = 1.975e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.233e-05,
        "routing_overhead": 3.087e-06,
        "step_overhead": 0.0001629,
        "sequence_overhead": 1.633e-05,
        "scaling_overhead": 9.196e-06,
        "interference": 1.209,
    },
    "sglang": {
        "layer_overhead": 8.713e-06,
        "routing_overhead": 2.577e-05,
        "step_overhead": 0.0004121,
        "sequence_overhead": 3.493e-05,
        "scaling_overhead": 8.858e-07,
        "interference": 0.762,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.084e-06,
        "routing_overhead": 3.089e-06,
        "step_overhead": 0.0004215,
        "sequence_overhead": 1.704e-05,
        "scaling_overhead": 2.233e-06,
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
        "settled": 0.1791,
        "warming": 0.5,
        "gathering": 16.0,
        "first_overhead": 0.008291,
        "contended_overhead": 0.01943,
        "contended_prefill": 0.1345,
        "first_step_factor": 2.0,
        "burst_factor": 0.04375,
        "first_sequence_overhead": 0.0001884,
    },
    "sglang": {
        "settled": 0.6605,
        "warming": 0.7256,
        "gathering": 16.0,
        "first_overhead": 0.03859,
        "contended_overhead": 0.1455,
        "contended_prefill": 0.4486,
        "first_step_factor": 3.863,
        "burst_factor": 0.08018,
        "first_sequence_overhead": 0.0001762,
    },
    "tensorrt-llm": {
        "settled": 0.5233,
        "warming": 0.5,
        "gathering": 16.0,
        "first_overhead": 0.006165,
        "contended_overhead": 0.02934,
        "contended_prefill": 0.1466,
        "first_step_factor": 7.716,
        "burst_factor": 0.03351,
        "first_sequence_overhead": 0.0001758,
    },
}
