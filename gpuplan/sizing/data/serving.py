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
    "matmul_factor": 0.9723,
    "attention_factor": 0.9985,
    "expert_factor": 0.8433,
    "link_factor": 0.7055,
    "elementwise_factor": 1.576,
    "block_overhead": 2.376e-06,
    "state_overhead": 1.78e-05,
    "eager_experts": 0.4446,
    "eager_state": 2.63,
    "eager_latent": 1.845,
    "eager_index": 0.82,
}
LATENT_OVERHEAD = 1.925e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.255e-05,
        "routing_overhead": 2.943e-06,
        "step_overhead": 0.0001622,
        "sequence_overhead": 4.093e-05,
        "scaling_overhead": 1.187e-05,
        "interference": 1.138,
        "eager_seconds": 0.0002488,
        "captured": 0.5,
    },
    "sglang": {
        "layer_overhead": 9.49e-06,
        "routing_overhead": 1.424e-05,
        "step_overhead": 0.0004549,
        "sequence_overhead": 2.87e-05,
        "scaling_overhead": 1.547e-06,
        "interference": 1.088,
        "eager_seconds": 0.0008077,
        "captured": 0.4576,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.663e-06,
        "routing_overhead": 2.842e-06,
        "step_overhead": 0.0003294,
        "sequence_overhead": 1.639e-05,
        "scaling_overhead": 3.279e-06,
        "interference": 1.133,
        "eager_seconds": 0.0005412,
        "captured": 0.554,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.193,
        "expert_factor": 0.8867,
        "overhead": 1.254,
        "scaling_overhead": 3.771e-05,
        "interference": 1.779,
        "untuned_prompts": 2.137,
    },
}
UNFUSED_SECONDS = 7.051e-06  # an exchange
OVERLAPPED = 0.3891  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4354  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001287  # a layer, graphs between attention
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2167,
        "gathering": 16.38,
        "first_overhead": 0.008044,
        "contended_overhead": 0.005239,
        "contended_prefill": 0.9098,
        "first_step_factor": 1.273,
        "burst_factor": 1.12,
        "line_steps": 1.811,
        "prompt_routing": 1.085,
        "first_sequence_overhead": 0.0006327,
    },
    "sglang": {
        "settled": 0.09783,
        "gathering": 16.38,
        "first_overhead": 0.006572,
        "contended_overhead": 0.1701,
        "contended_prefill": 0.3981,
        "first_step_factor": 7.465,
        "burst_factor": 0.9441,
        "line_steps": 1.0,
        "prompt_routing": 1.575,
        "first_sequence_overhead": 0.0009168,
    },
    "tensorrt-llm": {
        "settled": 0.6115,
        "gathering": 12.24,
        "first_overhead": 0.006282,
        "contended_overhead": 0.02564,
        "contended_prefill": 0.2936,
        "first_step_factor": 7.284,
        "burst_factor": 1.185,
        "line_steps": 1.0,
        "prompt_routing": 1.148,
        "first_sequence_overhead": 0.0001888,
    },
}
