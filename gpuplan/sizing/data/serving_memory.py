"""Memory of serving engines: what they allocate, and how sure predictions are."""

from __future__ import annotations

# Bytes beside weights, cache and work space, on one GPU.
ENGINE_BYTES = {"vllm": 2.1e9, "sglang": 2.3e9, "tensorrt-llm": 2.1e9}
ENGINE_SOURCE = {
    "vllm": "CUDA context, graphs and allocator, from points of maximum throughput",
    "sglang": "a public point of the pool at a memory fraction of 0.93 (vllm-project/vllm#21348)",
    "tensorrt-llm": "that of vLLM, not measured",
}
# Tokens of a block of the paged cache: --block-size of vLLM, --page-size of SGLang,
# tokens_per_block of TensorRT-LLM, by default.
BLOCK_TOKENS = {"vllm": 16, "sglang": 1, "tensorrt-llm": 32}
# 90 % of the measured peaks of generation in libraries whose code such formulas follow, models left
# out, as factors on what is expected.
INTERVAL = (0.97, 1.03)
INTERVAL_SOURCE = "90 % of public points of memory of generation (2026-11-21)"
