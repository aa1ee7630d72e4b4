"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own; `UNIFORM_INTERFERENCE` on its
`interference`, where answers have any length down to one token. `eager_seconds`: for which the host
starts the kernels of a prompt's layer with attention; `eager_experts` and `eager_state`: those of
its experts and of linear attention, `eager_latent`: what latent attention takes more, as parts of
that; of it, tuned settings leave `captured`. `FIRST_TOKEN`: what stands after `first_overhead`
grows from nothing with the load; of what an engine's own work takes of it, those who start no
server for each measurement see `settled`. Half of the others' part is there at `gathering`
requests; `burst_factor` is of the requests that a closed loop starts with.
"""

from __future__ import annotations

SOURCE = "calibrated on 1,714 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,557 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.9973,
    "attention_factor": 1.144,
    "expert_factor": 0.8342,
    "link_factor": 0.7103,
    "elementwise_factor": 1.546,
    "block_overhead": 2.209e-06,
    "state_overhead": 2.179e-05,
    "eager_experts": 0.4622,
    "eager_state": 1.304,
    "eager_latent": 1.962,
}
LATENT_OVERHEAD = 1.851e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.222e-05,
        "routing_overhead": 2.971e-06,
        "step_overhead": 0.0001631,
        "sequence_overhead": 1.409e-05,
        "scaling_overhead": 9.359e-06,
        "interference": 1.274,
        "eager_seconds": 0.0003404,
        "captured": 0.8924,
    },
    "sglang": {
        "layer_overhead": 9.42e-06,
        "routing_overhead": 2.283e-05,
        "step_overhead": 0.0004066,
        "sequence_overhead": 3.351e-05,
        "scaling_overhead": 8.235e-07,
        "interference": 0.7679,
        "eager_seconds": 0.0007802,
        "captured": 0.3802,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.066e-06,
        "routing_overhead": 3.118e-06,
        "step_overhead": 0.0004177,
        "sequence_overhead": 1.618e-05,
        "scaling_overhead": 2.235e-06,
        "interference": 1.086,
        "eager_seconds": 0.0005125,
        "captured": 0.4417,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.096,
        "expert_factor": 0.8603,
        "overhead": 1.491,
        "scaling_overhead": 3.141e-05,
    },
}
UNIFORM_INTERFERENCE = 1.392
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.3055,
        "gathering": 15.92,
        "first_overhead": 0.005786,
        "contended_overhead": 0.0049,
        "contended_prefill": 0.2942,
        "first_step_factor": 0.6167,
        "burst_factor": 0.4944,
        "first_sequence_overhead": 6.344e-05,
    },
    "sglang": {
        "settled": 0.0527,
        "gathering": 16.71,
        "first_overhead": 0.006337,
        "contended_overhead": 0.07503,
        "contended_prefill": 0.5462,
        "first_step_factor": 11.07,
        "burst_factor": 0.4694,
        "first_sequence_overhead": 0.0004595,
    },
    "tensorrt-llm": {
        "settled": 0.342,
        "gathering": 15.21,
        "first_overhead": 0.006387,
        "contended_overhead": 0.01795,
        "contended_prefill": 0.3177,
        "first_step_factor": 4.126,
        "burst_factor": 0.4013,
        "first_sequence_overhead": 0.0001351,
    },
}
