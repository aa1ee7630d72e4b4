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

SOURCE = "calibrated on 2,002 public points of time per output token (2026-11-27)"
FIRST_SOURCE = "calibrated on 1,760 public points of time to first token (2026-11-27)"
FACTORS = {
    "matmul_factor": 0.9485,
    "attention_factor": 1.099,
    "expert_factor": 0.8227,
    "link_factor": 0.7319,
    "elementwise_factor": 1.523,
    "block_overhead": 2.691e-06,
    "state_overhead": 1.734e-05,
    "eager_experts": 0.479,
    "eager_state": 2.179,
    "eager_latent": 1.695,
    "eager_index": 0.7948,
}
LATENT_OVERHEAD = 1.631e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.477e-05,
        "routing_overhead": 3.225e-06,
        "step_overhead": 0.0001713,
        "sequence_overhead": 3.546e-05,
        "scaling_overhead": 1.302e-05,
        "interference": 1.127,
        "eager_seconds": 0.0002948,
        "captured": 0.4998,
    },
    "sglang": {
        "layer_overhead": 9.057e-06,
        "routing_overhead": 1.658e-05,
        "step_overhead": 0.0004522,
        "sequence_overhead": 3.256e-05,
        "scaling_overhead": 7.587e-07,
        "interference": 0.8456,
        "eager_seconds": 0.0008277,
        "captured": 0.4005,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.797e-06,
        "routing_overhead": 2.725e-06,
        "step_overhead": 0.000392,
        "sequence_overhead": 1.524e-05,
        "scaling_overhead": 2.098e-06,
        "interference": 1.083,
        "eager_seconds": 0.0005727,
        "captured": 0.6315,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.187,
        "expert_factor": 0.8969,
        "overhead": 1.189,
        "scaling_overhead": 3.753e-05,
        "interference": 2.08,
        "untuned_prompts": 2.187,
    },
}
UNFUSED_SECONDS = 6.726e-06  # an exchange
OVERLAPPED = 0.3271  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.429  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001295  # a layer, of vLLM 0.8 to 0.10
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.223,
        "gathering": 16.28,
        "first_overhead": 0.006619,
        "contended_overhead": 0.004754,
        "contended_prefill": 0.6401,
        "first_step_factor": 1.307,
        "burst_factor": 1.051,
        "line_steps": 1.703,
        "prompt_routing": 1.098,
        "first_sequence_overhead": 0.0005233,
    },
    "sglang": {
        "settled": 0.08892,
        "gathering": 15.12,
        "first_overhead": 0.006334,
        "contended_overhead": 0.04592,
        "contended_prefill": 0.4791,
        "first_step_factor": 17.32,
        "burst_factor": 1.143,
        "line_steps": 1.0,
        "prompt_routing": 1.233,
        "first_sequence_overhead": 0.0004582,
    },
    "tensorrt-llm": {
        "settled": 0.3608,
        "gathering": 14.91,
        "first_overhead": 0.006366,
        "contended_overhead": 0.02386,
        "contended_prefill": 0.3077,
        "first_step_factor": 4.846,
        "burst_factor": 1.178,
        "line_steps": 1.0,
        "prompt_routing": 1.154,
        "first_sequence_overhead": 0.0001748,
    },
}
