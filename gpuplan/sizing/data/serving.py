"""Constants of the serving model, written by -.

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
    "matmul_factor": 0.9601,
    "attention_factor": 1.041,
    "expert_factor": 0.8166,
    "link_factor": 0.723,
    "elementwise_factor": 1.565,
    "block_overhead": 2.283e-06,
    "state_overhead": 1.705e-05,
    "eager_experts": 0.4936,
    "eager_state": 2.549,
    "eager_latent": 1.756,
    "eager_index": 0.83,
}
LATENT_OVERHEAD = 2.036e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.343e-05,
        "routing_overhead": 3.208e-06,
        "step_overhead": 0.0001699,
        "sequence_overhead": 3.352e-05,
        "scaling_overhead": 1.182e-05,
        "interference": 1.06,
        "eager_seconds": 0.000286,
        "captured": 0.5,
    },
    "sglang": {
        "layer_overhead": 9.676e-06,
        "routing_overhead": 1.506e-05,
        "step_overhead": 0.0004672,
        "sequence_overhead": 2.807e-05,
        "scaling_overhead": 1.604e-06,
        "interference": 1.076,
        "eager_seconds": 0.0008117,
        "captured": 0.4489,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.611e-06,
        "routing_overhead": 2.862e-06,
        "step_overhead": 0.0003381,
        "sequence_overhead": 1.396e-05,
        "scaling_overhead": 3.001e-06,
        "interference": 1.034,
        "eager_seconds": 0.0005619,
        "captured": 0.6045,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.201,
        "expert_factor": 0.905,
        "overhead": 1.232,
        "scaling_overhead": 3.774e-05,
        "interference": 1.817,
        "untuned_prompts": 2.134,
    },
}
UNFUSED_SECONDS = 6.752e-06  # an exchange
OVERLAPPED = 0.2874  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4304  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001289  # a layer, graphs between attention
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2138,
        "gathering": 16.43,
        "first_overhead": 0.007931,
        "contended_overhead": 0.005397,
        "contended_prefill": 0.8675,
        "first_step_factor": 1.292,
        "burst_factor": 1.12,
        "line_steps": 1.815,
        "prompt_routing": 1.102,
        "first_sequence_overhead": 0.0006064,
    },
    "sglang": {
        "settled": 0.1033,
        "gathering": 15.36,
        "first_overhead": 0.006569,
        "contended_overhead": 0.1624,
        "contended_prefill": 0.383,
        "first_step_factor": 8.081,
        "burst_factor": 0.9366,
        "line_steps": 1.0,
        "prompt_routing": 1.562,
        "first_sequence_overhead": 0.0008162,
    },
    "tensorrt-llm": {
        "settled": 0.3545,
        "gathering": 15.01,
        "first_overhead": 0.006349,
        "contended_overhead": 0.02598,
        "contended_prefill": 0.3723,
        "first_step_factor": 6.43,
        "burst_factor": 1.255,
        "line_steps": 1.0,
        "prompt_routing": 1.06,
        "first_sequence_overhead": 0.0001915,
    },
}
