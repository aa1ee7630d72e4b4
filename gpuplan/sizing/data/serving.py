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
    "matmul_factor": 0.9845,
    "attention_factor": 1.132,
    "expert_factor": 0.8199,
    "link_factor": 0.7032,
    "elementwise_factor": 1.542,
    "block_overhead": 2.19e-06,
    "state_overhead": 2.269e-05,
    "eager_experts": 0.375,
    "eager_state": 1.231,
    "eager_latent": 1.735,
}
LATENT_OVERHEAD = 1.9e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.174e-05,
        "routing_overhead": 3.037e-06,
        "step_overhead": 0.0001653,
        "sequence_overhead": 1.407e-05,
        "scaling_overhead": 9.314e-06,
        "interference": 1.274,
        "eager_seconds": 0.0003587,
        "captured": 0.8921,
    },
    "sglang": {
        "layer_overhead": 9.324e-06,
        "routing_overhead": 2.219e-05,
        "step_overhead": 0.0003947,
        "sequence_overhead": 3.405e-05,
        "scaling_overhead": 8.349e-07,
        "interference": 0.7607,
        "eager_seconds": 0.0008705,
        "captured": 0.3626,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.032e-06,
        "routing_overhead": 3.127e-06,
        "step_overhead": 0.0004147,
        "sequence_overhead": 1.604e-05,
        "scaling_overhead": 2.232e-06,
        "interference": 1.084,
        "eager_seconds": 0.0005149,
        "captured": 0.4603,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.225,
        "expert_factor": 0.877,
        "overhead": 1.396,
        "scaling_overhead": 3.133e-05,
    },
}
UNIFORM_INTERFERENCE = 1.412
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.3034,
        "gathering": 15.96,
        "first_overhead": 0.005648,
        "contended_overhead": 0.004433,
        "contended_prefill": 0.3018,
        "first_step_factor": 0.6131,
        "burst_factor": 0.4896,
        "first_sequence_overhead": 7.205e-05,
    },
    "sglang": {
        "settled": 0.05934,
        "gathering": 17.1,
        "first_overhead": 0.005867,
        "contended_overhead": 0.08492,
        "contended_prefill": 0.5394,
        "first_step_factor": 9.867,
        "burst_factor": 0.5228,
        "first_sequence_overhead": 0.0004605,
    },
    "tensorrt-llm": {
        "settled": 0.3415,
        "gathering": 15.22,
        "first_overhead": 0.006388,
        "contended_overhead": 0.01745,
        "contended_prefill": 0.3124,
        "first_step_factor": 4.152,
        "burst_factor": 0.3976,
        "first_sequence_overhead": 0.0001339,
    },
}
