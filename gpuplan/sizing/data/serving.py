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
    "matmul_factor": 0.9683,
    "attention_factor": 1.099,
    "expert_factor": 0.8254,
    "link_factor": 0.8825,
    "elementwise_factor": 1.141,
    "block_overhead": 2.289e-06,
    "state_overhead": 1.819e-05,
}
LATENT_OVERHEAD = 1.94e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.093e-05,
        "routing_overhead": 3.016e-06,
        "step_overhead": 0.0001627,
        "sequence_overhead": 1.515e-05,
        "scaling_overhead": 9.092e-06,
        "interference": 1.252,
    },
    "sglang": {
        "layer_overhead": 8.689e-06,
        "routing_overhead": 2.494e-05,
        "step_overhead": 0.0004129,
        "sequence_overhead": 3.501e-05,
        "scaling_overhead": 8.832e-07,
        "interference": 0.7723,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.924e-06,
        "routing_overhead": 3.063e-06,
        "step_overhead": 0.0004004,
        "sequence_overhead": 1.594e-05,
        "scaling_overhead": 2.201e-06,
        "interference": 1.06,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.264,
        "expert_factor": 0.9538,
        "overhead": 1.256,
        "scaling_overhead": 3.124e-05,
    },
}
UNIFORM_INTERFERENCE = 3.179
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.1788,
        "warming": 0.5,
        "gathering": 16.35,
        "first_overhead": 0.008593,
        "contended_overhead": 0.01861,
        "contended_prefill": 0.12,
        "first_step_factor": 2.0,
        "burst_factor": 0.04098,
        "first_sequence_overhead": 0.0001934,
    },
    "sglang": {
        "settled": 0.5923,
        "warming": 0.6839,
        "gathering": 7.478,
        "first_overhead": 0.03878,
        "contended_overhead": 0.2894,
        "contended_prefill": 0.797,
        "first_step_factor": 2.422,
        "burst_factor": 0.06317,
        "first_sequence_overhead": 0.0001547,
    },
    "tensorrt-llm": {
        "settled": 0.4888,
        "warming": 0.5,
        "gathering": 3.513,
        "first_overhead": 0.01307,
        "contended_overhead": 0.02736,
        "contended_prefill": 0.1958,
        "first_step_factor": 8.238,
        "burst_factor": 0.03007,
        "first_sequence_overhead": 0.000156,
    },
}
