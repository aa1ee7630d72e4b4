"""Bytes on one GPU of a serving replica at its worst moment.

The cache holds what the planned concurrency needs: the engine gives the rest of what it may take to
the cache as well, which is left as free here.
"""

from __future__ import annotations

from functools import cache

from gpuplan.sizing.formula import Formula, Quantity, constant
from gpuplan.sizing.sheet import Sheet

Line = tuple[str, Formula]

_EXPERTS = " + expert_layers * experts * expert_parameters * expert_bytes_each"
CONSTANTS: dict[str, Quantity] = {
    "max_num_batched_tokens": constant(8192, "1", "vLLM's default prefill budget of a step"),
    "context_bytes": constant(
        2.1e9, "B", "CUDA context, graphs and allocator, from maximum-throughput points of vLLM"
    ),
    "link_bytes": constant(0.4e9, "B", "NCCL buffers of a group, aiconfigurator-core 0.12.0"),
    "request_progress": constant(
        0.6, "1", "part of its output that a running request holds, measured"
    ),
}


def _weights(moe: bool) -> Formula:
    expression = "ceil(matmul_parameters * matmul_bytes_each{} + other_parameters * 2 / {})"
    return Formula(
        expression.format(_EXPERTS if moe else "", "tensor_parallel_size"),
        "B",
        "linear layers in the precision; embeddings and norms in bf16",
    )


_RUNNING = Formula(
    "ceil(slowness * sequences + 1.645 * sqrt(slowness * sequences))",
    "1",
    "95th percentile of the running requests (Poisson), at the speed that is met with the wanted "
    "confidence",
)
_ALL = Formula("sequences", "1", "a batch workload keeps every place taken")
_CACHE: tuple[Line, ...] = (
    (
        "kv_bytes_per_token",
        Formula("layers * cache_width * kv_bytes_each", "B", "keys and values of every layer"),
    ),
    (
        "tokens_per_request",
        Formula("input_mean + request_progress * output_mean", "1", "mean over a request's life"),
    ),
    (
        "tokens_margin",
        Formula(
            "sqrt((input_p95 - input_mean) ** 2 + (output_p95 - output_mean) ** 2)",
            "1",
            "from the mean to the 95th percentile of one request; spreads add in squares",
        ),
    ),
    (
        "kv_cache_tokens",
        Formula(
            "max(max_num_seqs * tokens_per_request + sqrt(max_num_seqs) * tokens_margin, "
            "max_model_len)",
            "1",
            "95th percentile of the sum over the running requests; at least the longest one",
        ),
    ),
)
_REST: tuple[Line, ...] = (
    (
        "activations_bytes",
        Formula(
            "ceil(2 * max_num_batched_tokens * (2.7 * mlp_width / tensor_parallel_size "
            "+ 1.7 * hidden_size) + 10 * max_num_seqs * vocabulary)",
            "B",
            "bf16 work space of a prefill step; logits in bf16, fp32 and as probabilities",
        ),
    ),
    (
        "overhead_bytes",
        Formula(
            "context_bytes + link_bytes * min(1, tensor_parallel_size - 1)",
            "B",
            "what is allocated beside tensors",
        ),
    ),
    (
        "used_bytes",
        Formula(
            "weights_bytes + kv_cache_bytes + activations_bytes + overhead_bytes",
            "B",
            "one GPU at its worst moment",
        ),
    ),
    (
        "usable_bytes",
        Formula("floor(memory_bytes * gpu_memory_utilization)", "B", "what the engine may take"),
    ),
)


_CACHE_BYTES = {
    False: Formula("ceil(kv_bytes_per_token * kv_cache_tokens)", "B", "every token in every layer"),
    True: Formula(
        "ceil(kv_bytes_per_token / layers * (full_layers * kv_cache_tokens + sliding_layers "
        "* min(kv_cache_tokens, max_num_seqs * sliding_window)))",
        "B",
        "a sliding window caps what its layers keep",
    ),
}
RUNNING = Sheet((("max_num_seqs", _RUNNING),))
ALL = Sheet((("max_num_seqs", _ALL),))


@cache
def memory(*, moe: bool, windowed: bool) -> Sheet:
    """Needs the shape, the lengths, `max_num_seqs` (`RUNNING` or `ALL`) and `CONSTANTS`."""
    cache_bytes = ("kv_cache_bytes", _CACHE_BYTES[windowed])
    return Sheet((("weights_bytes", _weights(moe)), *_CACHE, cache_bytes, *_REST))
