"""Parameters of a decoder, exactly, from its shape.

Each function counts the tensors that the architecture's weights have: see the modelling code of
huggingface/transformers. Modules for multi-token prediction, which only speculative decoding loads,
are not counted.
"""

from __future__ import annotations

from gpuplan.models.model import Experts, LatentAttention
from gpuplan.models.shape import Shape


def parameters(shape: Shape, *, active: bool = False) -> int:
    """All parameters; with `active`, without the experts that a token is not routed to."""
    hidden = shape.hidden_size
    ends = hidden * shape.vocabulary * (1 if shape.tied_embeddings else 2) + hidden
    attention = _attention(shape) + _attention_rest(shape) + shape.parts.norms * hidden
    return ends + shape.layers * attention + _mlps(shape, active) + _mlp_rest(shape, active)


def linear_parameters(shape: Shape, *, active: bool = False) -> int:
    """Weights of the linear layers that a quantized checkpoint stores in its low precision."""
    attention = _attention(shape) if shape.parts.attention_quantized else 0
    return shape.layers * attention + _mlps(shape, active)


def _mlps(shape: Shape, active: bool) -> int:
    """Gate, up and down projections of all layers, experts included."""
    experts = shape.experts
    width = _dense_layers(shape) * shape.intermediate_size
    if experts:
        routed = _routed(experts, active) * experts.intermediate_size
        width += experts.layers * (routed + experts.shared * experts.shared_intermediate_size)
    return 3 * shape.hidden_size * width


def _dense_layers(shape: Shape) -> int:
    return shape.layers - (shape.experts.layers if shape.experts else 0)


def _routed(experts: Experts, active: bool) -> int:
    return experts.active if active else experts.count


def _attention(shape: Shape) -> int:
    """Projections of one layer."""
    hidden = shape.hidden_size
    if shape.latent:
        return _latent_attention(shape.latent, hidden, shape.attention_heads)
    query = shape.attention_heads * shape.head_dim
    return 2 * hidden * query + 2 * hidden * shape.kv_heads * shape.head_dim


def _latent_attention(latent: LatentAttention, hidden: int, heads: int) -> int:
    """Down and up projections of queries and of keys and values, and the output projection."""
    query = heads * (latent.qk_nope_head_dim + latent.qk_rope_head_dim)
    rank = latent.q_lora_rank
    queries = hidden * rank + rank * query if rank else hidden * query
    down = hidden * (latent.kv_lora_rank + latent.qk_rope_head_dim)
    up = latent.kv_lora_rank * heads * (latent.qk_nope_head_dim + latent.v_head_dim)
    return queries + down + up + heads * latent.v_head_dim * hidden


def _attention_rest(shape: Shape) -> int:
    """Norms, biases and sinks of one layer's attention."""
    parts = shape.parts
    if latent := shape.latent:
        ranks = latent.kv_lora_rank + (latent.q_lora_rank or 0)
        biased = ranks + latent.qk_rope_head_dim + shape.hidden_size
        return ranks + (biased if parts.attention_bias == "all" else 0)
    biases = 0
    if parts.attention_bias != "none":
        biases += (shape.attention_heads + 2 * shape.kv_heads) * shape.head_dim
    if parts.attention_bias == "all":
        biases += shape.hidden_size
    norms = 2 * shape.head_dim if parts.query_key_norm else 0
    sinks = shape.attention_heads if parts.attention_sinks else 0
    return biases + norms + sinks


def _mlp_rest(shape: Shape, active: bool) -> int:
    """Routers and biases of all layers."""
    hidden, parts, experts = shape.hidden_size, shape.parts, shape.experts
    total = 0
    if parts.mlp_bias:
        total += _dense_layers(shape) * (2 * shape.intermediate_size + hidden)
    if experts:
        router = experts.count * (hidden + (1 if parts.router_bias else 0))
        bias = 2 * experts.intermediate_size + hidden if parts.expert_bias else 0
        total += experts.layers * (router + _routed(experts, active) * bias)
    return total
