"""Constants of the serving model, written by bench/calibrate.py.

Overheads are seconds. `VENDOR`: factors on the constants of another maker's GPUs, `overhead` on all
of an engine's but `scaling_overhead`, which has a value of its own. `PIECE_SECONDS`: for which the
host starts a layer of a decode step that is no single CUDA graph. `eager_seconds`: for which it
starts the kernels of a prompt's layer with attention; `eager_experts` and `eager_state`: those of
its experts and of linear attention, `eager_index` those of choosing tokens, `eager_latent`: what
latent attention takes more, as parts of that; of it, tuned settings leave `captured`.
`UNFUSED_SECONDS`: what an exchange takes more whose norm is a kernel of its own; `OVERLAPPED`: the
part of `sequence_overhead` that is left where the host works while the GPU does. `FIRST_TOKEN`:
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
    "matmul_factor": 0.9591,
    "attention_factor": 1.122,
    "expert_factor": 0.8172,
    "link_factor": 0.7626,
    "elementwise_factor": 1.527,
    "block_overhead": 2.399e-06,
    "state_overhead": 1.664e-05,
    "eager_experts": 0.5722,
    "eager_state": 1.684,
    "eager_latent": 1.533,
    "eager_index": 0.6349,
}
LATENT_OVERHEAD = 1.743e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.818e-05,
        "routing_overhead": 3.1e-06,
        "step_overhead": 0.0001638,
        "sequence_overhead": 3.55e-05,
        "scaling_overhead": 8.457e-06,
        "interference": 1.155,
        "eager_seconds": 0.0002993,
        "captured": 0.5001,
    },
    "sglang": {
        "layer_overhead": 9.129e-06,
        "routing_overhead": 1.796e-05,
        "step_overhead": 0.0003931,
        "sequence_overhead": 3.474e-05,
        "scaling_overhead": 7.591e-07,
        "interference": 0.7946,
        "eager_seconds": 0.0009192,
        "captured": 0.3647,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.619e-06,
        "routing_overhead": 2.692e-06,
        "step_overhead": 0.000369,
        "sequence_overhead": 1.473e-05,
        "scaling_overhead": 2.041e-06,
        "interference": 1.06,
        "eager_seconds": 0.0005684,
        "captured": 0.6221,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.192,
        "expert_factor": 1.0,
        "overhead": 1.408,
        "scaling_overhead": 2.536e-05,
    },
}
UNFUSED_SECONDS = 4.255e-06  # an exchange, of SGLang
OVERLAPPED = 0.291  # of `sequence_overhead`, vLLM from 0.14 on
PIECE_SECONDS = 0.0001323  # a layer, of vLLM 0.8 to 0.10
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2182,
        "gathering": 16.4,
        "first_overhead": 0.006661,
        "contended_overhead": 0.004792,
        "contended_prefill": 0.7245,
        "first_step_factor": 1.431,
        "burst_factor": 1.057,
        "line_steps": 1.715,
        "prompt_routing": 1.126,
        "first_sequence_overhead": 0.0005576,
    },
    "sglang": {
        "settled": 0.0978,
        "gathering": 14.62,
        "first_overhead": 0.00624,
        "contended_overhead": 0.03837,
        "contended_prefill": 0.4367,
        "first_step_factor": 21.35,
        "burst_factor": 1.159,
        "line_steps": 1.0,
        "prompt_routing": 1.138,
        "first_sequence_overhead": 0.0002946,
    },
    "tensorrt-llm": {
        "settled": 0.3626,
        "gathering": 14.88,
        "first_overhead": 0.006374,
        "contended_overhead": 0.02602,
        "contended_prefill": 0.3369,
        "first_step_factor": 5.295,
        "burst_factor": 1.212,
        "line_steps": 1.0,
        "prompt_routing": 1.176,
        "first_sequence_overhead": 0.0001764,
    },
}
