"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own, `prompts` on the kernels of
prompts and `untuned_prompts` on those whose inputs are scaled in blocks before. `PIECE_SECONDS`:
for which the host starts a layer of a decode step that is no single CUDA graph. `eager_seconds`:
for which it starts the kernels of a prompt's layer with attention; `eager_experts` and
`eager_state`: those of its experts and of linear attention, `eager_index` those of choosing tokens,
`eager_latent`: what latent attention takes more, as parts of that; of it, tuned settings leave
`captured`. `UNFUSED_SECONDS`: what an exchange takes more whose norm is a kernel of its own;
`OVERLAPPED`: the part of `sequence_overhead` that is left where the host works while the GPU does;
`SCALED_WITHIN`: the part of `scaling_overhead` that is where other kernels scale. `FIRST_TOKEN`:
what stands after `first_overhead` grows from nothing with the load; of what an engine's own work
takes of it, those who start no server for each measurement see `settled`. Half of the others' part
is there at `gathering` requests; `burst_factor` is of the requests that a closed loop starts with,
`line_steps` of those that follow in step where answers have one length. `prompt_routing` is how
much longer prompts of mixtures take than kernels whose tokens are routed evenly.
"""

from __future__ import annotations

SOURCE = "calibrated on 2,002 public points of time per output token (2026-11-27)"
FIRST_SOURCE = "calibrated on 1,760 public points of time to first token (2026-11-27)"
FACTORS = {
    "matmul_factor": 0.9514,
    "attention_factor": 1.093,
    "expert_factor": 0.8211,
    "link_factor": 0.7324,
    "elementwise_factor": 1.53,
    "block_overhead": 2.695e-06,
    "state_overhead": 1.717e-05,
    "eager_experts": 0.5853,
    "eager_state": 1.835,
    "eager_latent": 1.489,
    "eager_index": 0.764,
}
LATENT_OVERHEAD = 1.619e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.435e-05,
        "routing_overhead": 3.219e-06,
        "step_overhead": 0.0001717,
        "sequence_overhead": 3.472e-05,
        "scaling_overhead": 1.258e-05,
        "interference": 1.141,
        "eager_seconds": 0.0003151,
        "captured": 0.5,
    },
    "sglang": {
        "layer_overhead": 9.255e-06,
        "routing_overhead": 1.625e-05,
        "step_overhead": 0.0004539,
        "sequence_overhead": 3.442e-05,
        "scaling_overhead": 7.635e-07,
        "interference": 0.803,
        "eager_seconds": 0.0008864,
        "captured": 0.3764,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.735e-06,
        "routing_overhead": 2.491e-06,
        "step_overhead": 0.0003905,
        "sequence_overhead": 1.528e-05,
        "scaling_overhead": 2.09e-06,
        "interference": 1.08,
        "eager_seconds": 0.0005651,
        "captured": 0.6233,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.144,
        "expert_factor": 0.8521,
        "overhead": 1.302,
        "scaling_overhead": 3.752e-05,
        "prompts": 2.272,
        "untuned_prompts": 2.529,
    },
}
UNFUSED_SECONDS = 6.697e-06  # an exchange
OVERLAPPED = 0.326  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4689  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001295  # a layer, of vLLM 0.8 to 0.10
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2238,
        "gathering": 16.31,
        "first_overhead": 0.006424,
        "contended_overhead": 0.00459,
        "contended_prefill": 0.6263,
        "first_step_factor": 1.325,
        "burst_factor": 1.046,
        "line_steps": 1.695,
        "prompt_routing": 1.103,
        "first_sequence_overhead": 0.0005168,
    },
    "sglang": {
        "settled": 0.1228,
        "gathering": 16.24,
        "first_overhead": 0.006328,
        "contended_overhead": 0.03113,
        "contended_prefill": 0.4819,
        "first_step_factor": 20.75,
        "burst_factor": 0.717,
        "line_steps": 1.0,
        "prompt_routing": 1.081,
        "first_sequence_overhead": 0.0004466,
    },
    "tensorrt-llm": {
        "settled": 0.3647,
        "gathering": 14.85,
        "first_overhead": 0.006384,
        "contended_overhead": 0.02402,
        "contended_prefill": 0.2939,
        "first_step_factor": 4.836,
        "burst_factor": 1.17,
        "line_steps": 1.0,
        "prompt_routing": 1.164,
        "first_sequence_overhead": 0.0001749,
    },
}
