"""A transformer's dimensions as the numbers that time and memory need, on one GPU of a group.

Widths are elements a token and layer. Latent attention (MLA) keeps one compressed cache on every
GPU and computes decode steps inside the compressed space. Source: DeepSeek-V2 (2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.models.model import LatentAttention, Transformer
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import sheet

# Heads are split over the GPUs; fewer KV heads than GPUs are repeated.
GROUPED = sheet("""
    kv_split: 1 = min(tensor_parallel_size, kv_heads)  # fewer KV heads than GPUs are repeated
    cache_width: 1 = 2 * kv_heads * head_dim / kv_split  # keys and values
    score_width: 1 = 2 * attention_heads * head_dim / tensor_parallel_size
        # heads are split over the GPUs
    prompt_width: 1 = score_width  # scores and weighted values
    prompt_io_width: 1 = score_width + cache_width  # queries and outputs, keys and values
    attention_parameters: 1 = cached_layers * hidden_size
        * (score_width * (1 + output_gate / 2) + cache_width)  # projections, split as heads are
""")
# DeepSeek-V2: heads are split, the compressed cache and its projections are not.
LATENT = sheet("""
    cache_width: 1 = kv_rank + rope_dim  # the compressed row, whole on every GPU
    score_width: 1 = attention_heads * (2 * kv_rank + rope_dim) / tensor_parallel_size
        # decode steps compute inside the compressed space
    prompt_width: 1 = attention_heads * (nope_dim + rope_dim + value_dim) / tensor_parallel_size
        # prompts are computed with whole keys and values
    prompt_io_width: 1 = 2 * prompt_width  # queries and keys, values and outputs
    attention_parameters: 1 = cached_layers * (hidden_size * (query_rank + kv_rank + rope_dim)
        + attention_heads * (query_width * (nope_dim + rope_dim)
        + kv_rank * (nope_dim + value_dim) + value_dim * hidden_size) / tensor_parallel_size)
        # heads are split, compressions are not
""")
MLP = sheet("""
    projection_parameters: 1 = attention_parameters + hidden_size
        * (linear_layers * linear_width / tensor_parallel_size + router_width)
        # attention, linear attention, routers
    dense_parameters: 1 = hidden_size * mlp_matrices * mlp_width_sum / tensor_parallel_size
        # dense and shared MLPs
    matmul_parameters: 1 = projection_parameters + dense_parameters
        # what every token passes through
    state_width: 1 = linear_layers * state_elements / tensor_parallel_size
        # heads of linear attention are split over the GPUs
""")
EXPERTS = sheet("""
    ranks: 1 = tensor_parallel_size * data_parallel_size  # GPUs of a stage
    expert_parameters: 1 = mlp_matrices * expert_hidden * expert_width / ranks
        # one expert of one layer; experts, or each of them, are split over all ranks
""")


@cache
def inputs(model: Transformer) -> Mapping[str, Quantity]:
    """The scope of the sheets, without `tensor_parallel_size`; attention is not data-parallel."""
    linear, sparse = model.linear, model.sparse
    numbers: dict[str, float] = {
        "layers": model.layers,
        "layer_pairs": _blocks(model) / 2,
        "hidden_size": model.hidden_size,
        "attention_heads": model.attention_heads,
        "kv_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "output_gate": model.output_gate,
        "data_parallel_size": 1,
        "vocabulary": model.vocabulary,
        "parameters": model.parameters,
        "other_parameters": model.parameters - model.linear_parameters,
        "cached_layers": model.cached_layers,
        "full_layers": _full_layers(model),
        "sliding_layers": model.sliding_layers,
        "sliding_window": model.sliding_window or 0,
        "linear_layers": linear.layers if linear else 0,
        "linear_width": linear.input_width + linear.inner_width if linear else 0,
        "state_elements": linear.state_elements if linear else 0,
        "projection_launches": (6 if model.latent else 2) * model.cached_layers
        + (2 * linear.layers if linear else 0)
        + (model.experts.layers if model.experts else 0),
    }
    numbers |= _mlps(model)
    if model.latent:
        numbers |= _latent(model.latent, model.hidden_size)
    if sparse:
        numbers |= {
            "top_k": sparse.top_k,
            "index_layers": sparse.index_layers,
            "index_heads": sparse.index_heads,
            "index_width": sparse.index_layers * sparse.index_cached_per_token,
        }
    return {name: Quantity(float(value), "1", model.source) for name, value in numbers.items()}


def _blocks(model: Transformer) -> int:
    """Mixers of tokens, and MLPs: two a layer, but one where a layer is one block (Nemotron-H)."""
    linear = model.linear.layers if model.linear else 0
    mixers = model.cached_layers + linear if model.mlp_free_layers else model.layers
    return mixers + model.layers - model.mlp_free_layers


def _full_layers(model: Transformer) -> float:
    """Layers that see every token; those that keep an entry for several tokens count less."""
    groups = [g for g in model.attention if g.window is None]
    return sum(g.layers / g.tokens_per_entry for g in groups) if groups else model.full_layers


def _mlps(model: Transformer) -> dict[str, float]:
    experts, dense_layers = model.experts, model.dense_layers
    matrices, width = (3 if model.gated_mlp else 2), model.intermediate_size
    numbers: dict[str, float] = {
        "mlp_matrices": matrices,
        "mlp_width_sum": dense_layers * width,
        "mlp_width": width if dense_layers else 0,
        "router_width": 0,
        "dense_launches": 2 * dense_layers,
        "all_reduces": _blocks(model),
    }
    if not experts:
        return numbers
    shared = experts.shared * experts.shared_intermediate_size
    used = experts.active * experts.intermediate_size + shared
    return numbers | {
        "mlp_width_sum": dense_layers * width + experts.layers * shared,
        "mlp_width": max(numbers["mlp_width"], used),
        "router_width": experts.layers * experts.count,
        "dense_launches": 2 * (dense_layers + (experts.layers if shared else 0)),
        "experts": experts.count,
        "active_experts": experts.active,
        "expert_width": experts.intermediate_size,
        "expert_hidden": experts.latent_size or model.hidden_size,
        "expert_layers": experts.layers,
    }


def _latent(latent: LatentAttention, hidden_size: int) -> dict[str, float]:
    return {
        "query_rank": latent.q_lora_rank or 0,
        "query_width": latent.q_lora_rank or hidden_size,
        "kv_rank": latent.kv_lora_rank,
        "nope_dim": latent.qk_nope_head_dim,
        "rope_dim": latent.qk_rope_head_dim,
        "value_dim": latent.v_head_dim,
    }
