"""A transformer's dimensions as the numbers that time and memory need, on one GPU of a group.

Widths are elements a token and layer. Latent attention (MLA) keeps one compressed cache on every
GPU and computes decode steps inside the compressed space. Source: DeepSeek-V2 (2024).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.models.model import LatentAttention, Transformer
from gpuplan.sizing.formula import Formula, Quantity
from gpuplan.sizing.sheet import Sheet

_HEADS = "heads split over the GPUs; fewer KV heads than GPUs are repeated"
_LATENT = "DeepSeek-V2: heads are split, the compressed cache and its projections are not"

GROUPED = Sheet(
    (
        ("kv_split", Formula("min(tensor_parallel_size, kv_heads)", "1", _HEADS)),
        ("cache_width", Formula("2 * kv_heads * head_dim / kv_split", "1", _HEADS)),
        (
            "score_width",
            Formula("2 * attention_heads * head_dim / tensor_parallel_size", "1", _HEADS),
        ),
        ("prompt_width", Formula("score_width", "1", _HEADS)),
        ("prompt_io_width", Formula("score_width + cache_width", "1", _HEADS)),
        (
            "attention_parameters",
            Formula("layers * hidden_size * (score_width + cache_width)", "1", _HEADS),
        ),
    )
)
LATENT = Sheet(
    (
        ("cache_width", Formula("kv_rank + rope_dim", "1", _LATENT)),
        (
            "score_width",
            Formula(
                "attention_heads * (2 * kv_rank + rope_dim) / tensor_parallel_size", "1", _LATENT
            ),
        ),
        (
            "prompt_width",
            Formula(
                "attention_heads * (nope_dim + rope_dim + value_dim) / tensor_parallel_size",
                "1",
                _LATENT,
            ),
        ),
        ("prompt_io_width", Formula("2 * prompt_width", "1", _LATENT)),
        (
            "attention_parameters",
            Formula(
                "layers * (hidden_size * (query_rank + kv_rank + rope_dim) + attention_heads * "
                "(query_width * (nope_dim + rope_dim) + kv_rank * (nope_dim + value_dim) "
                "+ value_dim * hidden_size) / tensor_parallel_size)",
                "1",
                _LATENT,
            ),
        ),
    )
)
MLP = Sheet(
    (
        (
            "matmul_parameters",
            Formula(
                "attention_parameters + hidden_size * (mlp_matrices * mlp_width_sum "
                "/ tensor_parallel_size + router_width)",
                "1",
                "attention, dense and shared MLPs, routers: what every token passes through",
            ),
        ),
    )
)
EXPERTS = Sheet(
    (
        (
            "expert_parameters",
            Formula(
                "mlp_matrices * hidden_size * expert_width / tensor_parallel_size",
                "1",
                "one expert of one layer, split over the GPUs",
            ),
        ),
    )
)


@cache
def inputs(model: Transformer) -> Mapping[str, Quantity]:
    """The scope of the sheets, without `tensor_parallel_size`."""
    experts = model.experts
    expert_layers = experts.layers if experts else 0
    shared = experts.shared * experts.shared_intermediate_size if experts else 0
    dense_layers = model.layers - expert_layers
    used = experts.active * experts.intermediate_size + shared if experts else 0
    numbers: dict[str, float] = {
        "layers": model.layers,
        "hidden_size": model.hidden_size,
        "attention_heads": model.attention_heads,
        "kv_heads": model.kv_heads,
        "head_dim": model.head_dim,
        "vocabulary": model.vocabulary,
        "parameters": model.parameters,
        "other_parameters": model.parameters - model.linear_parameters,
        "full_layers": model.layers - model.sliding_layers,
        "sliding_layers": model.sliding_layers,
        "sliding_window": model.sliding_window or 0,
        "mlp_matrices": 3 if model.gated_mlp else 2,
        "mlp_width_sum": dense_layers * model.intermediate_size + expert_layers * shared,
        "mlp_width": max(model.intermediate_size if dense_layers else 0, used),
        "router_width": expert_layers * experts.count if experts else 0,
        "matmul_launches": _launches(model, dense_layers, expert_layers, shared),
    }
    if experts:
        numbers |= {
            "experts": experts.count,
            "active_experts": experts.active,
            "expert_width": experts.intermediate_size,
            "expert_layers": expert_layers,
        }
    if model.latent:
        numbers |= _latent(model.latent, model.hidden_size)
    return {name: Quantity(float(value), "1", model.source) for name, value in numbers.items()}


def _launches(model: Transformer, dense_layers: int, expert_layers: int, shared: int) -> int:
    """Matrix products of a step: projections (two, or six when latent), MLPs, routers."""
    attention = (6 if model.latent else 2) * model.layers
    return attention + 2 * dense_layers + expert_layers * (3 if shared else 1)


def _latent(latent: LatentAttention, hidden_size: int) -> dict[str, float]:
    return {
        "query_rank": latent.q_lora_rank or 0,
        "query_width": latent.q_lora_rank or hidden_size,
        "kv_rank": latent.kv_lora_rank,
        "nope_dim": latent.qk_nope_head_dim,
        "rope_dim": latent.qk_rope_head_dim,
        "value_dim": latent.v_head_dim,
    }
