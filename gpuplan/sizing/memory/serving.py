"""Bytes on one GPU of a serving replica at its worst moment.

The cache holds what the planned concurrency needs: the engine gives the rest of what it may take to
the cache as well, which is left as free here. What is expected is widened to the end of its
interval at the wanted confidence before it is held against the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.plan.model import Metric
from gpuplan.sizing.data.memory import (
    BLOCK_TOKENS,
    ENGINE_BYTES,
    ENGINE_SOURCE,
    INTERVALS,
    INTERVALS_SOURCE,
)
from gpuplan.sizing.evidence.formula import Formula, Quantity, constant
from gpuplan.sizing.evidence.intervals import metric, quantile
from gpuplan.sizing.evidence.sheet import Sheet
from gpuplan.sizing.memory.cache import Kept, cache_bytes

Line = tuple[str, Formula]

CONSTANTS: dict[str, Quantity] = {
    "max_num_batched_tokens": constant(8192, "1", "vLLM's default prefill budget of a step"),
    "link_bytes": constant(0.4e9, "B", "NCCL buffers of a group, aiconfigurator-core 0.12.0"),
    "request_progress": constant(
        0.6, "1", "part of its output that a running request holds, measured"
    ),
}
STAGES = {"pipeline_stages": constant(1, "1", "every GPU of a replica holds all layers")}


def engine_memory(engine: str) -> dict[str, Quantity]:
    """What an engine allocates for itself, and in which blocks it gives out the cache."""
    name = engine if engine in ENGINE_BYTES else "vllm"
    return {
        "context_bytes": constant(ENGINE_BYTES[name], "B", f"{ENGINE_SOURCE[name]}, {name}"),
        "block_tokens": constant(BLOCK_TOKENS[name], "1", f"block of the paged cache, {name}"),
    }


def confidence_memory(kind: str, confidence: float) -> dict[str, Quantity]:
    """The end of the interval of memory, and which part of the way there is asked for."""
    cited = f"{INTERVALS_SOURCE}, {kind}"
    return {
        "memory_high": constant(INTERVALS[kind][1], "1", cited),
        "memory_z": constant(quantile(confidence), "1", f"normal quantile of {confidence:g}"),
    }


def memory_metric(scope: Mapping[str, Quantity], kind: str) -> Metric:
    """What one GPU holds, against what may be taken of it."""
    return metric(
        "gpu_memory",
        "B",
        scope["gpu_memory"].value,
        factors=INTERVALS[kind],
        basis="calibrated" if kind == "trainer" else "extrapolated",
        limit=scope["usable_bytes"].value,
    )


def margin(parts: str) -> tuple[Line, Line, Line]:
    """`parts` are all but `own_bytes`, which an engine or a framework takes for itself."""
    total = f"{parts} + own_bytes"
    way = "(memory_high ** (memory_z / 1.645) - 1)"
    widened = f"max(0, ceil(own_bytes + gpu_memory * {way}))"
    return (
        ("gpu_memory", Formula(total, "B", "one GPU at its worst moment, expected")),
        (
            "overhead_bytes",
            Formula(widened, "B", "what is allocated beside tensors, and what may come on top"),
        ),
        (
            "used_bytes",
            Formula(f"{parts} + overhead_bytes", "B", "what is not exceeded with that confidence"),
        ),
    )


def _weights(moe: bool) -> Formula:
    experts = " + expert_layers * experts * expert_parameters * expert_bytes_each" if moe else ""
    return Formula(
        f"ceil(((matmul_parameters * matmul_bytes_each{experts}) + (other_parameters "
        "+ tower_parameters) * 2 / tensor_parallel_size) / pipeline_stages)",
        "B",
        "linear layers in the precision; embeddings, norms and encoders of images in bf16",
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
            "max_model_len) + max_num_seqs * (block_tokens - 1) / 2",
            "1",
            "95th percentile of the sum over the running requests, at least the longest one; half "
            "a block of each is empty",
        ),
    ),
)


def _activations(moe: bool) -> Formula:
    routed = " + routed_width" if moe else ""
    return Formula(
        "ceil(2 * max_num_batched_tokens * (2.7 * mlp_width / tensor_parallel_size "
        f"+ 1.7 * hidden_size{routed}) + 10 * max_num_seqs * vocabulary)",
        "B",
        "bf16 work space of a prefill step; logits in bf16, fp32 and as probabilities",
    )


_OWN = Formula(
    "context_bytes + link_bytes * min(1, tensor_parallel_size * pipeline_stages - 1)",
    "B",
    "context, graphs and allocator of the engine; buffers between GPUs",
)
_USABLE = Formula("floor(memory_bytes * gpu_memory_utilization)", "B", "what the engine may take")
_PARTS = "weights_bytes + kv_cache_bytes + activations_bytes"
RUNNING = Sheet((("max_num_seqs", _RUNNING),))
ALL = Sheet((("max_num_seqs", _ALL),))


@cache
def memory(*, moe: bool, found: Kept) -> Sheet:
    """Needs the shape, `memory_cache.cache_inputs`, the lengths, `max_num_seqs` (`RUNNING` or
    `ALL`), `STAGES`, `CONSTANTS`, `engine_memory` and `confidence_memory`."""
    return (
        Sheet((("weights_bytes", _weights(moe)), *_CACHE))
        + cache_bytes(found)
        + Sheet(
            (
                ("activations_bytes", _activations(moe)),
                ("own_bytes", _OWN),
                *margin(_PARTS),
                ("usable_bytes", _USABLE),
            )
        )
    )
