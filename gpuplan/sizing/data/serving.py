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

SOURCE = "calibrated on 1,919 public points of time per output token (2026-11-27)"
FIRST_SOURCE = "calibrated on 1,690 public points of time to first token (2026-11-27)"
FACTORS = {
    "matmul_factor": 0.9635,
    "attention_factor": 1.047,
    "expert_factor": 0.8331,
    "link_factor": 0.7581,
    "elementwise_factor": 1.545,
    "block_overhead": 2.618e-06,
    "state_overhead": 1.016e-05,
    "eager_experts": 0.4852,
    "eager_state": 2.573,
    "eager_latent": 1.803,
    "eager_index": 0.8366,
}
LATENT_OVERHEAD = 2.084e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.256e-05,
        "routing_overhead": 3.147e-06,
        "step_overhead": 0.0001697,
        "sequence_overhead": 3.299e-05,
        "scaling_overhead": 1.25e-05,
        "interference": 1.092,
        "eager_seconds": 0.0002856,
        "captured": 0.5,
    },
    "sglang": {
        "layer_overhead": 1.023e-05,
        "routing_overhead": 1.922e-05,
        "step_overhead": 0.0005039,
        "sequence_overhead": 2.935e-05,
        "scaling_overhead": 1.2e-06,
        "interference": 1.08,
        "eager_seconds": 0.0008211,
        "captured": 0.3977,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.601e-06,
        "routing_overhead": 3.035e-06,
        "step_overhead": 0.0003595,
        "sequence_overhead": 1.406e-05,
        "scaling_overhead": 2.862e-06,
        "interference": 1.042,
        "eager_seconds": 0.0005586,
        "captured": 0.5978,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.21,
        "expert_factor": 0.9071,
        "overhead": 1.176,
        "scaling_overhead": 3.756e-05,
        "interference": 1.81,
        "untuned_prompts": 2.125,
    },
}
UNFUSED_SECONDS = 7.179e-06  # an exchange
OVERLAPPED = 0.3148  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4504  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001289  # a layer, graphs between attention
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.224,
        "gathering": 16.21,
        "first_overhead": 0.00812,
        "contended_overhead": 0.00495,
        "contended_prefill": 0.7849,
        "first_step_factor": 1.353,
        "burst_factor": 1.084,
        "line_steps": 1.757,
        "prompt_routing": 1.112,
        "first_sequence_overhead": 0.0005874,
    },
    "sglang": {
        "settled": 0.1024,
        "gathering": 15.13,
        "first_overhead": 0.006526,
        "contended_overhead": 0.159,
        "contended_prefill": 0.3614,
        "first_step_factor": 8.15,
        "burst_factor": 0.9433,
        "line_steps": 1.0,
        "prompt_routing": 1.577,
        "first_sequence_overhead": 0.0008997,
    },
    "tensorrt-llm": {
        "settled": 0.3531,
        "gathering": 15.03,
        "first_overhead": 0.006338,
        "contended_overhead": 0.02701,
        "contended_prefill": 0.3901,
        "first_step_factor": 5.898,
        "burst_factor": 1.223,
        "line_steps": 1.0,
        "prompt_routing": 1.109,
        "first_sequence_overhead": 0.0001859,
    },
}
