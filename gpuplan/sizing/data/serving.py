"""Constants of the serving model, written by bench/fitting/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own, `interference` on an engine's,
`untuned_prompts` on the kernels of prompts whose inputs are scaled in blocks in shapes that nobody
tuned. `PIECE_SECONDS`: for which the host starts a layer of a step that is CUDA graphs between its
attention. `eager_seconds`: for which it starts the kernels of a prompt's layer with attention;
`eager_experts` and `eager_state`: those of its experts and of linear attention, `eager_index` those
of choosing tokens, `eager_latent`: what latent attention takes more, as parts of that; of it, tuned
settings leave `captured`. `UNFUSED_SECONDS`: what an exchange takes more whose norm is a kernel of
its own; `OVERLAPPED`: the part of `sequence_overhead` that is left where the host works while the
GPU does; `SCALED_WITHIN`: the part of `scaling_overhead` that is where other kernels scale.
`FIRST_TOKEN`: what stands after `first_overhead` grows from nothing with the load; of what an
engine's own work takes of it, those who start no server for each measurement see `settled`. Half of
the others' part is there at `gathering` requests; `burst_factor` is of the requests that a closed
loop starts with, `line_steps` of those that follow in step where answers have one length.
`prompt_routing` is how much longer prompts of mixtures take than kernels whose tokens are routed
evenly.
"""

from __future__ import annotations

SOURCE = "calibrated on 1,902 public points of time per output token (2026-11-27)"
FIRST_SOURCE = "calibrated on 1,682 public points of time to first token (2026-11-27)"
FACTORS = {
    "matmul_factor": 0.9661,
    "attention_factor": 1.012,
    "expert_factor": 0.8422,
    "link_factor": 0.7102,
    "elementwise_factor": 1.574,
    "block_overhead": 2.407e-06,
    "state_overhead": 1.764e-05,
    "eager_experts": 0.4442,
    "eager_state": 2.636,
    "eager_latent": 1.853,
    "eager_index": 0.8176,
}
LATENT_OVERHEAD = 1.925e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.253e-05,
        "routing_overhead": 2.934e-06,
        "step_overhead": 0.0001623,
        "sequence_overhead": 4.053e-05,
        "scaling_overhead": 1.188e-05,
        "interference": 1.146,
        "eager_seconds": 0.0002495,
        "captured": 0.5,
    },
    "sglang": {
        "layer_overhead": 9.552e-06,
        "routing_overhead": 1.427e-05,
        "step_overhead": 0.0004575,
        "sequence_overhead": 2.846e-05,
        "scaling_overhead": 1.556e-06,
        "interference": 1.089,
        "eager_seconds": 0.0008068,
        "captured": 0.4567,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.68e-06,
        "routing_overhead": 2.833e-06,
        "step_overhead": 0.0003301,
        "sequence_overhead": 1.627e-05,
        "scaling_overhead": 3.315e-06,
        "interference": 1.133,
        "eager_seconds": 0.0005431,
        "captured": 0.5515,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.199,
        "expert_factor": 0.8893,
        "overhead": 1.247,
        "scaling_overhead": 3.769e-05,
        "interference": 1.774,
        "untuned_prompts": 2.137,
    },
}
UNFUSED_SECONDS = 7.066e-06  # an exchange
OVERLAPPED = 0.3871  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4362  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001284  # a layer, graphs between attention
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2168,
        "gathering": 16.38,
        "first_overhead": 0.008026,
        "contended_overhead": 0.005217,
        "contended_prefill": 0.9106,
        "first_step_factor": 1.28,
        "burst_factor": 1.121,
        "line_steps": 1.813,
        "prompt_routing": 1.083,
        "first_sequence_overhead": 0.0006312,
    },
    "sglang": {
        "settled": 0.09797,
        "gathering": 16.38,
        "first_overhead": 0.006573,
        "contended_overhead": 0.1703,
        "contended_prefill": 0.3968,
        "first_step_factor": 7.435,
        "burst_factor": 0.9452,
        "line_steps": 1.0,
        "prompt_routing": 1.572,
        "first_sequence_overhead": 0.0009175,
    },
    "tensorrt-llm": {
        "settled": 0.6064,
        "gathering": 12.28,
        "first_overhead": 0.006281,
        "contended_overhead": 0.02554,
        "contended_prefill": 0.2939,
        "first_step_factor": 7.285,
        "burst_factor": 1.185,
        "line_steps": 1.0,
        "prompt_routing": 1.146,
        "first_sequence_overhead": 0.0001883,
    },
}
