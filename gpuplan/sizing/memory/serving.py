"""Bytes on one GPU of a serving replica at its worst moment.

The cache holds what the planned concurrency needs: the engine gives the rest of what it may take to
the cache as well, which is left as free here. What is expected is widened to the end of its
interval at the wanted confidence before it is held against the GPU.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.plan.model import Metric
from gpuplan.sizing.data.serving_memory import (
    BLOCK_TOKENS,
    ENGINE_BYTES,
    ENGINE_SOURCE,
    INTERVAL,
    INTERVAL_SOURCE,
    SMALL_STEPS,
    STEP_SOURCE,
    STEP_TOKENS,
)
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.memory.cache import Kept, cache_bytes
from gpuplan.sizing.memory.margin import SERVED, gpu_memory_metric, interval
from gpuplan.units import GIB

CONSTANTS: dict[str, Quantity] = {
    "max_num_batched_tokens": constant(8192, "1", "tokens of a step, where nothing says how many"),
    "link_bytes": constant(0.4e9, "B", "NCCL buffers of a group, aiconfigurator-core 0.12.0"),
    "request_progress": constant(
        0.6, "1", "part of its output that a running request holds, measured"
    ),
}


def engine_memory(engine: str) -> dict[str, Quantity]:
    """What an engine allocates for itself, and in which blocks it gives out the cache."""
    name = engine if engine in ENGINE_BYTES else "vllm"
    return {
        "context_bytes": constant(ENGINE_BYTES[name], "B", f"{ENGINE_SOURCE[name]}, {name}"),
        "block_tokens": constant(BLOCK_TOKENS[name], "1", f"block of the paged cache, {name}"),
    }


def step_tokens(engine: str, gpu: str, memory_bytes: float) -> dict[str, Quantity]:
    """How many tokens an engine computes in a step by default, in a service and at most."""
    name = engine if engine in STEP_TOKENS else "vllm"
    rows = STEP_TOKENS[name]
    _, service, most = next(row for row in rows if memory_bytes >= row[0] * GIB)
    if gpu.startswith(SMALL_STEPS.get(name, "-")):
        _, service, most = rows[-1]
    cited = f"{name} on {gpu}, {STEP_SOURCE[name]}"
    return {
        "default_step_tokens": constant(service, "1", f"default of a server: {cited}"),
        "largest_step_tokens": constant(most, "1", f"default for throughput alone: {cited}"),
    }


def confidence_memory(confidence: float) -> dict[str, Quantity]:
    return interval(INTERVAL[1], confidence, INTERVAL_SOURCE)


def memory_metric(scope: Mapping[str, Quantity]) -> Metric:
    """What one GPU holds, against what may be taken of it."""
    return gpu_memory_metric(scope, INTERVAL, "extrapolated")


RUNNING = sheet("""
    max_num_seqs: 1 = max(2, ceil(sequences + 2.326 * sqrt(sequences)))
        # 99th percentile of the running requests (Poisson), and a place for one that comes beside
        # a single one
""")
ALL = sheet("""
    max_num_seqs: 1 = sequences  # a batch workload keeps every place taken
""")
# A time to first token is that of a prompt in one step. Time per output token is the same with
# small steps and with large ones: each prompt is computed once.
STEP = sheet("""
    max_num_batched_tokens: 1 = max(default_step_tokens, max_num_seqs)
        # the engine's default of a server, and a token of every running request
""")
PROMPT_STEP = sheet("""
    max_num_batched_tokens: 1 = max(default_step_tokens, max_num_seqs,
        min(largest_step_tokens, ceil((input_p95 + max_num_seqs) / 1024) * 1024))
        # for the time to first token, a long prompt beside a token of every running request, within
        # the engine's defaults of a server and for throughput alone
""")
LARGEST_STEP = sheet("""
    max_num_batched_tokens: 1 = max(largest_step_tokens, max_num_seqs)
        # the engine's default for throughput alone
""")
_REQUEST = sheet("""
    tokens_per_request: 1 = input_mean + request_progress * longer_output
        # mean over a request's life
    tokens_margin: 1 = sqrt((input_p95 - input_mean) ** 2 + (output_p95 - output_mean) ** 2)
        # from the mean to the 95th percentile of one request; spreads add in squares
""")
_CACHE = sheet("""
    kv_cache_tokens: 1 = max(max_num_seqs * tokens_per_request
        + sqrt(max_num_seqs) * tokens_margin, max_model_len)
        + max_num_seqs * (block_tokens - 1) / 2
        # 95th percentile of the sum over the running requests, at least the longest one; half a
        # block of each is empty
""")
_STAGED_CACHE = sheet("""
    stage_places: 1 = max_num_seqs / pipeline_stages  # of the batch that each stage computes
    kv_cache_tokens: 1 = pipeline_stages * max(stage_places * tokens_per_request
        + sqrt(stage_places) * tokens_margin, max_model_len)
        + max_num_seqs * (block_tokens - 1) / 2
        # 95th percentile of the sum over the running requests of each stage's batch, at least the
        # longest one; half a block of each is empty
""")


def _limits(*, spread: bool) -> Sheet:
    ranks = "tensor_parallel_size * pipeline_stages" + " * data_parallel_size" * spread
    own = sheet(f"""
        own_bytes: B = context_bytes + link_bytes * min(1, {ranks} - 1)
            # context, graphs and allocator of the engine; buffers between GPUs
    """)
    return own + SERVED


@cache
def memory(*, moe: bool, kept: Kept, spread: bool = False, staged: bool = False) -> Sheet:
    """`spread`: attention is data-parallel; `staged`: layers are a pipeline. Needs the shape,
    `memory_cache.cache_inputs`, the lengths, `max_num_seqs` (`RUNNING` or `ALL`), `CONSTANTS`,
    `engine_memory` and `confidence_memory`."""
    experts = " + expert_layers * experts * expert_parameters * expert_bytes_each" if moe else ""
    routed = " + routed_width" if moe else ""
    weights = sheet(f"""
        weights_bytes: B = ceil((projection_parameters * matmul_bytes_each
            + dense_parameters * dense_bytes_each{experts}
            + (other_parameters + tower_parameters) * bf16_bytes / tensor_parallel_size)
            / pipeline_stages)
            # linear layers in the precision; embeddings, norms and encoders of images in bf16
    """)
    activations = sheet(f"""
        activations_bytes: B = ceil(bf16_bytes * max_num_batched_tokens
            * (2.7 * mlp_width / tensor_parallel_size + 1.7 * hidden_size{routed})
            + (bf16_bytes + 2 * fp32_bytes) * max_num_seqs * vocabulary)
            # bf16 work space of a prefill step; logits in bf16, fp32 and as probabilities
    """)
    tokens = _REQUEST + (_STAGED_CACHE if staged else _CACHE)
    return weights + tokens + cache_bytes(kept) + activations + _limits(spread=spread)
