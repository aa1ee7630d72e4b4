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

SOURCE = "calibrated on 1,704 public points of time per output token (2026-11-21)"
FIRST_SOURCE = "calibrated on 1,547 public points of time to first token (2026-11-21)"
FACTORS = {
    "matmul_factor": 0.9885,
    "attention_factor": 1.126,
    "expert_factor": 0.8339,
    "link_factor": 0.6929,
    "elementwise_factor": 2.331,
    "block_overhead": 2.244e-06,
    "state_overhead": 2.29e-05,
    "eager_experts": 0.3819,
    "eager_state": 1.237,
    "eager_latent": 1.763,
}
LATENT_OVERHEAD = 1.921e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.181e-05,
        "routing_overhead": 3.089e-06,
        "step_overhead": 0.0001653,
        "sequence_overhead": 1.368e-05,
        "scaling_overhead": 9.398e-06,
        "interference": 1.199,
        "eager_seconds": 0.0003663,
        "captured": 0.9284,
    },
    "sglang": {
        "layer_overhead": 9.315e-06,
        "routing_overhead": 2.232e-05,
        "step_overhead": 0.0003955,
        "sequence_overhead": 3.37e-05,
        "scaling_overhead": 8.395e-07,
        "interference": 0.7093,
        "eager_seconds": 0.0009029,
        "captured": 0.3712,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.085e-06,
        "routing_overhead": 3.134e-06,
        "step_overhead": 0.000424,
        "sequence_overhead": 1.551e-05,
        "scaling_overhead": 2.195e-06,
        "interference": 1.007,
        "eager_seconds": 0.0005135,
        "captured": 0.4801,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.225,
        "expert_factor": 0.8743,
        "overhead": 1.394,
        "scaling_overhead": 3.142e-05,
    },
}
UNIFORM_INTERFERENCE = 1.445
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.304,
        "gathering": 15.95,
        "first_overhead": 0.005728,
        "contended_overhead": 0.004743,
        "contended_prefill": 0.2854,
        "first_step_factor": 0.6629,
        "burst_factor": 0.487,
        "first_sequence_overhead": 7.674e-05,
    },
    "sglang": {
        "settled": 0.06253,
        "gathering": 16.89,
        "first_overhead": 0.005847,
        "contended_overhead": 0.08545,
        "contended_prefill": 0.5255,
        "first_step_factor": 10.74,
        "burst_factor": 0.5143,
        "first_sequence_overhead": 0.0004507,
    },
    "tensorrt-llm": {
        "settled": 0.3434,
        "gathering": 15.18,
        "first_overhead": 0.006408,
        "contended_overhead": 0.01786,
        "contended_prefill": 0.2938,
        "first_step_factor": 4.478,
        "burst_factor": 0.3866,
        "first_sequence_overhead": 0.0001344,
    },
}
