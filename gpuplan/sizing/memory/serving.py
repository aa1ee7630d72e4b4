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
    CACHE_HIGH,
    CACHE_SOURCE,
    INTERVAL,
    INTERVAL_SOURCE,
)
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Sheet, sheet
from gpuplan.sizing.memory.cache import Kept, cache_bytes
from gpuplan.sizing.memory.margin import gpu_memory_metric, interval
from gpuplan.sizing.memory.towers import TOWER

CONSTANTS: dict[str, Quantity] = {
    "max_num_batched_tokens": constant(8192, "1", "tokens of a step, where nothing says how many"),
    "request_progress": constant(
        0.6, "1", "part of its output that a running request holds, measured"
    ),
}


def confidence_memory(confidence: float) -> dict[str, Quantity]:
    most = constant(CACHE_HIGH, "1", CACHE_SOURCE)
    return interval(INTERVAL[1], confidence, INTERVAL_SOURCE) | {"cache_high": most}


def memory_metric(scope: Mapping[str, Quantity]) -> Metric:
    """What one GPU holds, against what may be taken of it."""
    held, cached = (scope[name].value for name in ("gpu_memory", "kv_cache_bytes"))
    ends = zip(INTERVAL, (1.0, CACHE_HIGH), strict=True)
    low, high = ((end * (held - cached) + more * cached) / held for end, more in ends)
    return gpu_memory_metric(scope, (low, high), "extrapolated")


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


_MARGIN = sheet("""
    gpu_memory: B = weights_bytes + kv_cache_bytes + activations_bytes + own_bytes
        # one GPU at its worst moment
    overhead_bytes: B = max(0, ceil((gpu_memory - kv_cache_bytes)
        * memory_high ** (memory_z / 1.645) - weights_bytes - activations_bytes
        + kv_cache_bytes * (cache_high ** (memory_z / 1.645) - 1)))
        # what is allocated beside tensors, and what may come on top of them and of the cache
    used_bytes: B = weights_bytes + kv_cache_bytes + activations_bytes + overhead_bytes
        # what is not exceeded with that confidence
""")
_USABLE = sheet("""
    usable_bytes: B = floor((memory_bytes - driver_bytes) * gpu_memory_utilization)
        # what the engine may take: a share of what programs see
""")


def _limits(*, spread: bool) -> Sheet:
    ranks = "tensor_parallel_size * pipeline_stages" + " * data_parallel_size" * spread
    own = sheet(f"""
        own_bytes: B = context_bytes + link_bytes * min(1, {ranks} - 1)
            + graph_bytes * min(1, max_num_seqs / graph_places)
            # what the engine holds beside tensors; buffers between GPUs; graphs
    """)
    return own + _MARGIN + _USABLE


@cache
def memory(
    *, moe: bool, kept: Kept, spread: bool = False, staged: bool = False, images: bool = False
) -> Sheet:
    """`spread`: attention is data-parallel; `staged`: layers are a pipeline; `images`: a tower
    stands beside the language model. Needs the shape, `memory_cache.cache_inputs`,
    `towers.tower_inputs`, the lengths, `max_num_seqs` (`RUNNING` or `ALL`), `CONSTANTS`,
    `engines.server_memory` and `confidence_memory`."""
    tokens = _REQUEST + (_STAGED_CACHE if staged else _CACHE)
    held = _weights(moe=moe, images=images) + tokens + cache_bytes(kept)
    return held + _activations(moe=moe, images=images) + _limits(spread=spread)


def _weights(*, moe: bool, images: bool) -> Sheet:
    experts = " + expert_layers * experts * expert_parameters * expert_bytes_each" if moe else ""
    experts += " * expert_padding" if moe else ""
    tables, why = "", ""
    if images:
        tables = " + bf16_bytes * rotary_elements"
        why = "; tables of positions on every GPU"
    return sheet(f"""
        weights_bytes: B = ceil((projection_parameters * matmul_bytes_each
            + dense_parameters * dense_bytes_each{experts}
            + (other_parameters - kept_parameters + tower_parameters) * bf16_bytes
            / tensor_parallel_size) / pipeline_stages{tables})
            # linear layers in the precision; embeddings, norms and encoders of images in bf16{why}
    """)


def _activations(*, moe: bool, images: bool) -> Sheet:
    routed, width = "", "expert_width * expert_parallel_size / ranks"
    if moe:
        routed = f""" + bf16_bytes * max_num_batched_tokens * active_experts
            * (max(2 * {width}, expert_hidden) + {width})"""
    taken = f"""max(
                logit_bytes * max_num_seqs * vocabulary
                + bf16_bytes * max_num_batched_tokens * hidden_size,
                bf16_bytes * max_num_batched_tokens
                * (3 * dense_width / tensor_parallel_size + 4 * hidden_size)){routed}"""
    if not images:
        return sheet(f"""
            activations_bytes: B = ceil({taken})
                # the larger of a full step's layer and of its sampling; what experts work in
        """)
    return TOWER + sheet(f"""
        activations_bytes: B = ceil(encoded_bytes + max(tower_bytes, {taken}))
            # encoded images that are kept; the larger of a full step, by its layer or its sampling
            # and what experts work in, and of images that are encoded before it
    """)
