"""A transformer's linear layers and widths as the numbers that a training step needs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from gpuplan.models.model import LatentAttention, Transformer
from gpuplan.sizing.evidence.formula import Quantity

Widths = list[tuple[int, int, int]]  # (in, out, how many)


def dense_widths(model: Transformer) -> Widths:
    """Of the linear layers that every token passes; without experts and routers."""
    h, experts, linear = model.hidden_size, model.experts, model.linear
    shapes = _attention_widths(model)
    if linear:
        shapes += [(h, linear.input_width, linear.layers), (linear.inner_width, h, linear.layers)]
    widths = [(model.intermediate_size, model.dense_layers)]
    if experts and experts.shared:
        widths.append((experts.shared * experts.shared_intermediate_size, experts.layers))
    if experts and experts.latent_size:
        size = experts.latent_size
        shapes += [(h, size, experts.layers), (size, h, experts.layers)]
    up = 2 if model.gated_mlp else 1
    for width, count in widths:
        shapes += [(h, width, up * count), (width, h, count)]
    return [(a, b, count) for a, b, count in shapes if a and b and count]


def _attention_widths(model: Transformer) -> Widths:
    h, layers = model.hidden_size, model.cached_layers
    if model.latent:
        return _latent_widths(model, model.latent)
    heads, kv = model.attention_heads * model.head_dim, model.kv_heads * model.head_dim
    gate = 2 if model.output_gate else 1
    return [(h, gate * heads, layers), (h, kv, 2 * layers), (heads, h, layers)]


def _latent_widths(model: Transformer, latent: LatentAttention) -> Widths:
    h, heads, layers = model.hidden_size, model.attention_heads, model.cached_layers
    key = latent.qk_nope_head_dim + latent.qk_rope_head_dim
    query = latent.q_lora_rank or h
    return [
        (h, latent.q_lora_rank or 0, layers),
        (query, heads * key, layers),
        (h, latent.kv_lora_rank + latent.qk_rope_head_dim, layers),
        (latent.kv_lora_rank, heads * (latent.qk_nope_head_dim + latent.v_head_dim), layers),
        (heads * latent.v_head_dim, h, layers),
    ]


def _attended(model: Transformer) -> dict[str, float]:
    """Heads x mean head size of scores and values, summed over the layers that see everything, and
    over those that see a window; a compressed cache has fewer entries than tokens."""
    full, windowed, window = 0.0, 0.0, 0
    for group in model.attention:
        width = group.layers * group.heads * (group.head_dim + group.value_dim) / 2
        if group.window is None:
            full += width / group.tokens_per_entry
        else:
            windowed, window = windowed + width, max(window, group.window)
    return {"full_width": full, "window_width": windowed, "attended_window": window}


def _routed(model: Transformer) -> dict[str, float]:
    experts = model.experts
    if experts is None:
        return {}
    width = experts.latent_size or model.hidden_size
    matrices = experts.layers * (3 if model.gated_mlp else 2)
    one = matrices * width * experts.intermediate_size
    return {
        "routed_parameters": experts.active * one,
        "expert_parameters_held": experts.count * one,
        "routed_width": matrices * experts.active * (width + experts.intermediate_size),
        "exchanged_width": width,
        "active_experts": experts.active,
        "expert_layers": experts.layers,
    }


@cache
def inputs(model: Transformer) -> Mapping[str, Quantity]:
    """What a step needs beside `shapes.inputs`; towers aside. Where `dense_widths` does not list
    the weights as they are (low-rank outputs, indexers), operands are in proportion to them."""
    dense, routed = dense_widths(model), _routed(model)
    listed = sum(a * b * count for a, b, count in dense)
    operands = sum((a + b) * count for a, b, count in dense)
    experts, linear = model.experts, model.linear
    routers = model.hidden_size * experts.count * experts.layers if experts else 0
    towers = sum(tower.parameters for tower in model.towers)
    every = model.active_linear_parameters - routed.get("routed_parameters", 0) - towers
    every += model.kept_parameters
    more = every / listed
    numbers: dict[str, float] = {
        "adapter_width": operands,
        "unrouted_parameters": listed * more + routers,
        "operand_width": operands * more + routed.get("routed_width", 0),
        "linear_parameters": model.linear_parameters,
        "whole_layers": model.layers - model.mlp_free_layers,
        "mamba_width": linear.layers * linear.inner_width if linear else 0,
        "residual_streams": model.residual_streams,
        **_attended(model),
        **routed,
    }
    return {name: Quantity(float(value), "1", model.source) for name, value in numbers.items()}
