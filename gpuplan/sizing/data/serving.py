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

SOURCE = "calibrated on 1,772 public points of time per output token (2026-11-27)"
FIRST_SOURCE = "calibrated on 1,609 public points of time to first token (2026-11-27)"
FACTORS = {
    "matmul_factor": 0.9852,
    "attention_factor": 1.169,
    "expert_factor": 0.8174,
    "link_factor": 0.7033,
    "elementwise_factor": 1.543,
    "block_overhead": 2.047e-06,
    "state_overhead": 2.063e-05,
    "eager_experts": 0.4741,
    "eager_state": 1.391,
    "eager_latent": 1.874,
}
LATENT_OVERHEAD = 1.907e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.352e-05,
        "routing_overhead": 2.93e-06,
        "step_overhead": 0.0001795,
        "sequence_overhead": 1.393e-05,
        "scaling_overhead": 8.951e-06,
        "interference": 1.261,
        "eager_seconds": 0.0003087,
        "captured": 0.9735,
    },
    "sglang": {
        "layer_overhead": 1.048e-05,
        "routing_overhead": 2.152e-05,
        "step_overhead": 0.0004404,
        "sequence_overhead": 3.086e-05,
        "scaling_overhead": 8.613e-07,
        "interference": 0.8036,
        "eager_seconds": 0.0008371,
        "captured": 0.3849,
    },
    "tensorrt-llm": {
        "layer_overhead": 4.092e-06,
        "routing_overhead": 3.168e-06,
        "step_overhead": 0.0004277,
        "sequence_overhead": 1.604e-05,
        "scaling_overhead": 2.563e-06,
        "interference": 1.083,
        "eager_seconds": 0.0005003,
        "captured": 0.4473,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.219,
        "expert_factor": 1.078,
        "overhead": 1.184,
        "scaling_overhead": 2.691e-05,
    },
}
UNIFORM_INTERFERENCE = 1.274
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2985,
        "gathering": 15.85,
        "first_overhead": 0.006308,
        "contended_overhead": 0.004644,
        "contended_prefill": 0.4094,
        "first_step_factor": 0.6578,
        "burst_factor": 0.5239,
        "first_sequence_overhead": 7.686e-05,
    },
    "sglang": {
        "settled": 0.05367,
        "gathering": 16.84,
        "first_overhead": 0.006714,
        "contended_overhead": 0.05195,
        "contended_prefill": 0.4831,
        "first_step_factor": 14.97,
        "burst_factor": 0.4614,
        "first_sequence_overhead": 0.0003091,
    },
    "tensorrt-llm": {
        "settled": 0.3556,
        "gathering": 15.02,
        "first_overhead": 0.006387,
        "contended_overhead": 0.01997,
        "contended_prefill": 0.396,
        "first_step_factor": 4.4,
        "burst_factor": 0.4319,
        "first_sequence_overhead": 0.000137,
    },
}
