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
is there at `gathering` requests; `burst_factor` is of the requests that a closed loop starts with.
"""

from __future__ import annotations

SOURCE = "calibrated on 1,986 public points of time per output token (2026-11-27)"
FIRST_SOURCE = "calibrated on 1,752 public points of time to first token (2026-11-27)"
FACTORS = {
    "matmul_factor": 0.9664,
    "attention_factor": 1.124,
    "expert_factor": 0.8223,
    "link_factor": 0.7637,
    "elementwise_factor": 1.527,
    "block_overhead": 2.427e-06,
    "state_overhead": 1.655e-05,
    "eager_experts": 0.5728,
    "eager_state": 1.68,
    "eager_latent": 1.537,
    "eager_index": 0.6315,
}
LATENT_OVERHEAD = 1.739e-06  # a layer
ENGINE = {
    "vllm": {
        "layer_overhead": 1.807e-05,
        "routing_overhead": 3.182e-06,
        "step_overhead": 0.0001613,
        "sequence_overhead": 3.567e-05,
        "scaling_overhead": 8.537e-06,
        "interference": 1.165,
        "eager_seconds": 0.0002996,
        "captured": 0.5001,
    },
    "sglang": {
        "layer_overhead": 9.471e-06,
        "routing_overhead": 1.748e-05,
        "step_overhead": 0.0004211,
        "sequence_overhead": 3.496e-05,
        "scaling_overhead": 7.568e-07,
        "interference": 0.7942,
        "eager_seconds": 0.0009285,
        "captured": 0.3625,
    },
    "tensorrt-llm": {
        "layer_overhead": 3.627e-06,
        "routing_overhead": 2.696e-06,
        "step_overhead": 0.0003712,
        "sequence_overhead": 1.487e-05,
        "scaling_overhead": 2.044e-06,
        "interference": 1.062,
        "eager_seconds": 0.0005688,
        "captured": 0.6243,
    },
}
VENDOR = {
    "amd": {
        "matmul_factor": 1.189,
        "expert_factor": 1.004,
        "overhead": 1.395,
        "scaling_overhead": 3.664e-05,
        "prompts": 2.259,
        "untuned_prompts": 2.554,
    },
}
UNFUSED_SECONDS = 6.727e-06  # an exchange
OVERLAPPED = 0.2888  # of `sequence_overhead`, vLLM from 0.14 on
SCALED_WITHIN = 0.4743  # of `scaling_overhead`, vLLM from 0.18 on
PIECE_SECONDS = 0.0001328  # a layer, of vLLM 0.8 to 0.10
FIRST_TOKEN = {
    "vllm": {
        "settled": 0.2054,
        "gathering": 16.57,
        "first_overhead": 0.007572,
        "contended_overhead": 0.002901,
        "contended_prefill": 0.8677,
        "first_step_factor": 1.068,
        "burst_factor": 0.3687,
        "first_sequence_overhead": 0.0002947,
    },
    "sglang": {
        "settled": 0.0681,
        "gathering": 15.05,
        "first_overhead": 0.006742,
        "contended_overhead": 0.04762,
        "contended_prefill": 0.5433,
        "first_step_factor": 16.86,
        "burst_factor": 0.4842,
        "first_sequence_overhead": 0.0002688,
    },
    "tensorrt-llm": {
        "settled": 0.351,
        "gathering": 15.06,
        "first_overhead": 0.006372,
        "contended_overhead": 0.02391,
        "contended_prefill": 0.414,
        "first_step_factor": 3.925,
        "burst_factor": 0.5072,
        "first_sequence_overhead": 0.0001414,
    },
}
