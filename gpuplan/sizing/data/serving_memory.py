"""Memory of serving engines: what they allocate, and how sure predictions are."""

from __future__ import annotations

# Bytes beside weights, cache and work space, on one GPU.
ENGINE_BYTES = {"vllm": 2.1e9, "sglang": 2.3e9, "tensorrt-llm": 2.1e9, "tei": 2.1e9}
ENGINE_SOURCE = {
    "vllm": "CUDA context, graphs and allocator, from points of maximum throughput",
    "sglang": "a public point of the pool at a memory fraction of 0.93 (vllm-project/vllm#21348)",
    "tensorrt-llm": "that of vLLM, not measured",
    "tei": "that of vLLM, not measured",
}
# Of a server of language models (bench/points/memory_served_public.csv). A program sees less than
# the whole memory: 0.4 to 0.75 GiB less on GeForce RTX 3090 to B200.
DRIVER_BYTES = 0.5e9
DRIVER_SOURCE = "total memory that vLLM prints, against nvidia-smi's, of nine GPUs"
START_SOURCE = "vLLM's own account at its start (llm-d-incubation/llm-d-planner)"
SERVER_BYTES = 0.27e9
# NCCL's, and what vLLM sets aside for reductions over NVLink: not by 0.11, by 0.19.
LINK_BYTES = {"buffers": 0.45e9, "workspace": 1.95e9}
WORKSPACE_SINCE = (0, 12)
# vLLM sorted the logits of all its places, until a kernel of its own samples. Others do not say:
# as vLLM does now.
LOGIT_BYTES = {"sorted": 38.3, "sampled": 15.0}
SAMPLER_SINCE = (0, 17)
# Rows and columns of mxfp4 experts come in multiples of these on GPUs before Blackwell.
PADDED = (256, 128)
PADDED_SOURCE = "gpt-oss of 2880 x 2880 in vLLM on one, two and four GPUs (Hopper, Ampere)"
# vLLM counts its graphs within the share from 0.21 on.
GRAPH_BYTES = 1.07e9
GRAPH_PLACES = 256
GRAPHS_COUNTED = (0, 21)
# Tokens of a block of the paged cache: --block-size of vLLM, --page-size of SGLang,
# tokens_per_block of TensorRT-LLM, by default.
BLOCK_TOKENS = {"vllm": 16, "sglang": 1, "tensorrt-llm": 32, "tei": 1}
# Tokens of a step that engines take by default, from so many GiB of GPU memory on: of a server, and
# where throughput alone counts. Of vLLM those of offline inference; it knows an A100 by name, on
# which larger steps are slower. Of SGLang the size of prefill chunks, and of prefill batches.
STEP_TOKENS = {
    "vllm": ((70, 8192, 16384), (0, 2048, 8192)),
    "sglang": ((160, 16384, 16384), (60, 8192, 16384), (35, 4096, 16384), (0, 2048, 16384)),
    "tei": ((0, 16384, 16384),),
    "tensorrt-llm": ((0, 8192, 8192),),
}
SMALL_STEPS = {"vllm": "a100"}  # devices that take the last row whatever memory they have
STEP_SOURCE = {
    "vllm": "vllm-project/vllm vllm/engine/arg_utils.py and #17885, read 2026-11-22",
    "sglang": "sgl-project/sglang python/sglang/srt/server_args.py, read 2026-11-22",
    "tensorrt-llm": "max_num_tokens of NVIDIA/TensorRT-LLM llmapi/llm_args.py, read 2026-11-27",
    "tei": "--max-batch-tokens of huggingface/text-embeddings-inference v1.9.3",
}
# Of a step's tokens, those of images that engines encode at once, where nothing limits them.
IMAGE_SHARE = 1.0
IMAGES_ELSEWHERE = "that of vLLM, not measured"
IMAGE_SOURCE = {
    "vllm": "what vLLM tries at its start (vllm/multimodal/encoder_budget.py, read 2026-11-29)",
    "sglang": "that of vLLM: SGLang tries no images and keeps no room for them under a "
    "--mem-fraction-static (python/sglang/srt/server_args.py, read 2026-11-29)",
}
# What servers take beside their cache, as factors on what is expected: 15 of 16 rooms that others
# print than those whom the numbers above were read off (bench/points/memory_served_public.csv).
# They take less where an older release samples without sorting.
INTERVAL = (0.85, 1.06)
INTERVAL_SOURCE = "15 of 16 servers that are no part of the fit, as they print it (2026-11-28)"
# A cache that holds the 95th percentile of what runs is exceeded at times: with so much more of it
# replays of the examples put off one request in a hundred at most (tests/replay).
CACHE_HIGH = 1.03
CACHE_SOURCE = "replays of the examples, which put off 1 % of the requests at most"
