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
    "matmul_factor": 0.9605,
    "attention_factor": 1.099,
    "expert_factor": 0.8366,
    "link_factor": 0.7477,
    "elementwise_factor": 1.522,
    "block_overhead": 2.546e-06,
    "state_overhead": 1.376e-05,
    "eager_experts": 0.4805,
    "eager_state": 2.156,
    "eager_latent": 1.667,
    "eager_index": 0.8252,
}
LATENT_OVERHEAD = 2.08e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.305e-05,
        "routing_overhead": 2.991e-06,
        "step_overhead": 0.0001669,
        "sequence_overhead": 3.428e-05,
        "scaling_overhead": 1.255e-05,
        "interference": 1.089,
        "eager_seconds": 0.0003189,
        "captured": 0.5001,
    },
    "sglang": {
        "layer_overhead": 9.399e-06,
        "routing_overhead": 1.839e-05,
        "step_overhead": 0.0004726,
        "sequence_overhead": 3.14e-05,
        "scaling_overhead": 1.089e-06,
        "interference": 0.8028,
        "eager_seconds": 0.000837,
        "captured": 0.4153,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.613e-06,
        "routing_overhead": 2.886e-06,
        "step_overhead": 0.0003624,
        "sequence_overhead": 1.413e-05,
        "scaling_overhead": 2.568e-06,
        "interference": 1.047,
        "eager_seconds": 0.0005643,
        "captured": 0.6183,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.182,
        "expert_factor": 0.9068,
        "overhead": 1.194,
        "scaling_overhead": 3.792e-05,
        "interference": 2.155,
        "untuned_prompts": 2.191,
    },
}
UNFUSED_SECONDS = 6.286e-06  # an exchange
OVERLAPPED = 0.3087  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4234  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001295  # a layer, graphs between attention
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.236,
        "gathering": 15.95,
        "first_overhead": 0.008022,
        "contended_overhead": 0.005001,
        "contended_prefill": 0.6515,
        "first_step_factor": 1.23,
        "burst_factor": 1.075,
        "line_steps": 1.742,
        "prompt_routing": 1.098,
        "first_sequence_overhead": 0.0005324,
    },
    "sglang": {
        "settled": 0.09922,
        "gathering": 15.59,
        "first_overhead": 0.006348,
        "contended_overhead": 0.08378,
        "contended_prefill": 0.4615,
        "first_step_factor": 14.67,
        "burst_factor": 1.196,
        "line_steps": 1.0,
        "prompt_routing": 1.227,
        "first_sequence_overhead": 0.0003538,
    },
    "tensorrt-llm": {
        "settled": 0.3537,
        "gathering": 15.02,
        "first_overhead": 0.006323,
        "contended_overhead": 0.02508,
        "contended_prefill": 0.2948,
        "first_step_factor": 5.061,
        "burst_factor": 1.186,
        "line_steps": 1.0,
        "prompt_routing": 1.147,
        "first_sequence_overhead": 0.0001882,
    },
}
