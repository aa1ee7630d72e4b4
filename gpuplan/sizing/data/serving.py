"""Constants of the serving model, written by bench/fitting/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own, `interference` on an engine's,
`untuned_prompts` on the kernels of prompts whose inputs are scaled in blocks in shapes that nobody
tuned. `PIECE_SECONDS`: for which the host starts a layer of a decode step that is no single CUDA
graph. `eager_seconds`: for which it starts the kernels of a prompt's layer with attention;
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
    "matmul_factor": 0.9615,
    "attention_factor": 1.099,
    "expert_factor": 0.8372,
    "link_factor": 0.7478,
    "elementwise_factor": 1.522,
    "block_overhead": 2.559e-06,
    "state_overhead": 1.369e-05,
    "eager_experts": 0.4762,
    "eager_state": 2.127,
    "eager_latent": 1.622,
    "eager_index": 0.8283,
}
LATENT_OVERHEAD = 2.085e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.307e-05,
        "routing_overhead": 2.986e-06,
        "step_overhead": 0.0001669,
        "sequence_overhead": 3.435e-05,
        "scaling_overhead": 1.267e-05,
        "interference": 1.089,
        "eager_seconds": 0.000295,
        "captured": 0.5,
    },
    "sglang": {
        "layer_overhead": 9.346e-06,
        "routing_overhead": 1.854e-05,
        "step_overhead": 0.0004696,
        "sequence_overhead": 3.152e-05,
        "scaling_overhead": 1.09e-06,
        "interference": 0.803,
        "eager_seconds": 0.0008467,
        "captured": 0.416,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.628e-06,
        "routing_overhead": 2.92e-06,
        "step_overhead": 0.0003618,
        "sequence_overhead": 1.425e-05,
        "scaling_overhead": 2.569e-06,
        "interference": 1.047,
        "eager_seconds": 0.0005652,
        "captured": 0.6201,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.181,
        "expert_factor": 0.9058,
        "overhead": 1.198,
        "scaling_overhead": 3.803e-05,
        "interference": 2.15,
        "untuned_prompts": 2.193,
    },
}
UNFUSED_SECONDS = 6.28e-06  # an exchange
OVERLAPPED = 0.3087  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4211  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001294  # a layer, of vLLM 0.8 to 0.10
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2233,
        "gathering": 16.26,
        "first_overhead": 0.006686,
        "contended_overhead": 0.004897,
        "contended_prefill": 0.6399,
        "first_step_factor": 1.312,
        "burst_factor": 1.048,
        "line_steps": 1.698,
        "prompt_routing": 1.094,
        "first_sequence_overhead": 0.0005312,
    },
    "sglang": {
        "settled": 0.1006,
        "gathering": 15.63,
        "first_overhead": 0.006325,
        "contended_overhead": 0.08166,
        "contended_prefill": 0.4745,
        "first_step_factor": 14.3,
        "burst_factor": 1.193,
        "line_steps": 1.0,
        "prompt_routing": 1.222,
        "first_sequence_overhead": 0.0003586,
    },
    "tensorrt-llm": {
        "settled": 0.3654,
        "gathering": 14.84,
        "first_overhead": 0.006385,
        "contended_overhead": 0.0244,
        "contended_prefill": 0.2913,
        "first_step_factor": 4.947,
        "burst_factor": 1.169,
        "line_steps": 1.0,
        "prompt_routing": 1.145,
        "first_sequence_overhead": 0.0001892,
    },
}
