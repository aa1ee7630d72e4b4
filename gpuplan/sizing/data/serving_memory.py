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
# 90 % of the measured peaks of generation in libraries whose code such formulas follow, models left
# out, as factors on what is expected.
INTERVAL = (0.97, 1.03)
INTERVAL_SOURCE = "90 % of public points of memory of generation (2026-11-21)"
