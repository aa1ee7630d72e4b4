"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own. `PIECE_SECONDS`: for which the
host starts a layer of a decode step that is no single CUDA graph. `eager_seconds`: for which it
starts the kernels of a prompt's layer with attention; `eager_experts` and `eager_state`: those of
its experts and of linear attention, `eager_latent`: what latent attention takes more, as parts of
that; of it, tuned settings leave `captured`. `FIRST_TOKEN`: what stands after `first_overhead`
grows from nothing with the load; of what an engine's own work takes of it, those who start no
server for each measurement see `settled`. Half of the others' part is there at `gathering`
requests; `burst_factor` is of the requests that a closed loop starts with.
"""

from __future__ import annotations

SOURCE = "calibrated on 1,762 public points of time per output token (2026-11-27)"
FIRST_SOURCE = "calibrated on 1,599 public points of time to first token (2026-11-27)"
FACTORS = {
    "matmul_factor": 0.9913,
    "attention_factor": 1.109,
    "expert_factor": 0.8149,
    "link_factor": 0.7243,
    "elementwise_factor": 1.537,
    "block_overhead": 2.212e-06,
    "state_overhead": 2.423e-05,
    "eager_experts": 0.578,
    "eager_state": 1.585,
    "eager_latent": 1.667,
    "eager_index": 0.7,
}
LATENT_OVERHEAD = 1.686e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 2.214e-05,
        "routing_overhead": 3.374e-06,
        "step_overhead": 0.0001656,
        "sequence_overhead": 1.638e-05,
        "scaling_overhead": 8.952e-06,
        "interference": 1.254,
        "eager_seconds": 0.0002981,
        "captured": 0.5,
    },
    "sglang": {
        "layer_overhead": 9.772e-06,
        "routing_overhead": 1.693e-05,
        "step_overhead": 0.0003951,
        "sequence_overhead": 3.519e-05,
        "scaling_overhead": 1.014e-06,
        "interference": 0.8096,
        "eager_seconds": 0.0009445,
        "captured": 0.3593,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.885e-06,
        "routing_overhead": 3.093e-06,
        "step_overhead": 0.0004031,
        "sequence_overhead": 1.591e-05,
        "scaling_overhead": 2.478e-06,
        "interference": 1.074,
        "eager_seconds": 0.0005708,
        "captured": 0.6279,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.17,
        "expert_factor": 0.9832,
        "overhead": 1.405,
        "scaling_overhead": 2.815e-05,
    },
}
UNFUSED_SECONDS = 6e-06
OVERLAPPED = 0.5
PIECE_SECONDS = 0.0001373  # a layer, of vLLM 0.8 to 0.10
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2975,
        "gathering": 15.8,
        "first_overhead": 0.006683,
        "contended_overhead": 0.00674,
        "contended_prefill": 0.4028,
        "first_step_factor": 0.7629,
        "burst_factor": 0.5113,
        "first_sequence_overhead": 8.497e-05,
    },
    "sglang": {
        "settled": 0.08803,
        "gathering": 13.49,
        "first_overhead": 0.006257,
        "contended_overhead": 0.04116,
        "contended_prefill": 0.3877,
        "first_step_factor": 15.83,
        "burst_factor": 0.4595,
        "first_sequence_overhead": 0.0002383,
    },
    "tensorrt-llm": {
        "settled": 0.3433,
        "gathering": 15.19,
        "first_overhead": 0.006327,
        "contended_overhead": 0.02134,
        "contended_prefill": 0.3139,
        "first_step_factor": 3.43,
        "burst_factor": 0.4773,
        "first_sequence_overhead": 0.0001357,
    },
}
